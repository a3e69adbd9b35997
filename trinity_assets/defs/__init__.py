"""The asset graph: the only package that knows Dagster.

Belongs here: one module per floor of the graph, which reads its upstream artifacts, calls the domain package that does
the work, and reports what a person looks for; and what runs, watches and rebuilds the graph. Does not belong here: any
decision about tasks, answers, scores or heads.

The modules that define assets do without ``from __future__ import annotations``: Dagster reads the annotations of a
step as types.
"""
