"""Trainers: each turns an objective and its settings into a head.

Belongs here: one module per trainer, with a function ``train(objective, settings) -> TrainedHead``. A trainer is
declared by one line in ``TRAINERS`` of ``routing/specs.py``. Does not belong here: splits, evaluation, and any reward.
"""
