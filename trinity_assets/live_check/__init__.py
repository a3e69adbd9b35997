"""A live check: a few real questions to every worker, to see what goes out, what comes back, and how it is graded.

Belongs here: which questions are asked (``questions``), asking one worker in a process of its own (``asking``), what a
check finds (``findings``), all workers beside each other with their grades (``checking``), and the findings in words
(``report``). Does not belong here: how a question is asked (``workers/``) and graded (``grading/``).

The questions are those of a build, under the same digests and in the same ledger, so what is bought here is not bought
again.
"""
