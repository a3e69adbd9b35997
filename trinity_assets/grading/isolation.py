"""What a grader needs whose completions are each graded in a process of their own (``processes``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

LIBRARY_CPU_S = 10
"""Seconds of CPU time that comparing one answer may take: sympy can take for ever."""


@dataclass(frozen=True)
class Isolation:
    """``prepare`` runs once per server, so that its forks start ready, and gives the facts that are worth recording.

    Both take the grader's spec. ``cpu_s`` limits the grading of one completion.
    """

    prepare: Callable[[Any], dict[str, str]]
    cpu_s: Callable[[Any], int] = lambda _: LIBRARY_CPU_S
