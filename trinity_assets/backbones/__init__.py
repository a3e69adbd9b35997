"""Backbones: the frozen language model whose hidden state is the routing feature.

Belongs here: where the weights come from and what they hash to, the feature spec, computing a feature from a question
(the same function for training and for serving), and the feature artifact with its reuse. Does not belong here: what a
task is (``benchmarks/``), what is done with a feature (``routing/``, ``checkpoints/``), Dagster.
"""
