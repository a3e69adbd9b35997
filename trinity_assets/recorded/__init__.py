"""Recorded outcomes: what a worker scored or answered somewhere else, read from files instead of asked for.

Belongs here: how a recorded worker is declared (``specs``), the logs of other programs as plain rows (``formats``),
reading the files (``files``), finding each row's task (``matching``), and the table of a cell's outcomes
(``outcomes``). Does not belong here: whether a completion is right (``grading/``), asking anybody (``workers/``), and
Dagster.
"""
