"""Learning which worker to ask.

Belongs here: the router table and its split, objectives over it, trainers of a head, the baselines a head must beat,
the statistics of the comparison, and the pictures of both. Does not belong here: how a score came about
(``grading/``), how a feature came about (``backbones/``), and what is shipped (``checkpoints/``).
"""
