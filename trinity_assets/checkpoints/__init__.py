"""What is shipped: a directory that says which worker to ask, and can prove that it is whole.

Belongs here: the manifest, writing and verifying a checkpoint, and the coordinator that routes with one. Does not
belong here: training and its statistics (``routing/``), computing features (``backbones/``), answering over HTTP.
"""
