"""What is asked: sources of tasks, snapshots, near-duplicate groups.

Belongs here: reading tasks from a source, freezing them as the two tables of a snapshot, rendering the benchmark's
prompt. Does not belong here: how an answer is graded (``grading/``) and how a worker is asked (``workers/``).
"""
