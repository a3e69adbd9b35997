"""From answers to scores: extraction, graders, settlement, solve tables.

Belongs here: what a completion is worth and why. Does not belong here: asking for completions (``workers/``) and
running untrusted programs (``sandbox/``).
"""
