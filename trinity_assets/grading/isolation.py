"""Which graders run in processes of their own, and what their servers get ready before the first completion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trinity_assets.grading.specs import MathGrader, ProceduralGrader, PythonFunctionGrader
from trinity_assets.sandbox.probing import find_sandbox

LIBRARY_CPU_S = 10
"""Seconds of CPU time that comparing one answer may take: sympy can take for ever."""


@dataclass(frozen=True)
class Isolation:
    """``prepare`` runs once per server, so that its forks start ready; ``cpu_s`` limits the grading of a completion."""

    prepare: Callable[[Any], object]
    cpu_s: Callable[[Any], int] = lambda _: LIBRARY_CPU_S


def _find_sandbox(grader: PythonFunctionGrader) -> None:
    find_sandbox(allow_unsandboxed=grader.allow_unsandboxed)


def _import_math_verify(_grader: MathGrader) -> None:
    import math_verify  # noqa: F401 - half a second that no completion should pay


def _import_nothing(_grader: ProceduralGrader) -> None:
    """Its grader says what to install where the package is absent."""


ISOLATED: dict[type, Isolation] = {
    PythonFunctionGrader: Isolation(_find_sandbox, lambda grader: grader.limits.cpu_s),
    MathGrader: Isolation(_import_math_verify),
    ProceduralGrader: Isolation(_import_nothing),
}
