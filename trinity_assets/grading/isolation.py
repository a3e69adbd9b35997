"""Which graders run in processes of their own, and what their servers get ready before the first completion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from trinity_assets.grading.specs import MathGrader, ProceduralGrader, PythonFunctionGrader
from trinity_assets.sandbox.probing import find_sandbox

LIBRARY_CPU_S = 10
"""Seconds of CPU time that comparing one answer may take: sympy can take for ever."""


@dataclass(frozen=True)
class Isolation:
    """``prepare`` runs once per server, so that its forks start ready, and gives the facts that are worth recording.

    ``cpu_s`` limits the grading of a completion.
    """

    prepare: Callable[[Any], dict[str, str]]
    cpu_s: Callable[[Any], int] = lambda _: LIBRARY_CPU_S


def _sandbox_facts(grader: PythonFunctionGrader) -> dict[str, str]:
    sandbox = find_sandbox(allow_unsandboxed=grader.allow_unsandboxed)
    limits = ", ".join(f"{name} {value}" for name, value in grader.limits.model_dump().items())
    return {"sandbox": sandbox.tier.name, "python": sandbox.python, "limits": limits}


def _math_facts(_grader: MathGrader) -> dict[str, str]:
    from trinity_assets.grading.mathematics import warm_up

    warm_up()  # a second that no completion should pay
    return {name: version(name) for name in ("math-verify", "sympy")}


def _procedural_facts(_grader: ProceduralGrader) -> dict[str, str]:
    try:
        return {"reasoning-gym": version("reasoning-gym")}
    except PackageNotFoundError:  # its grader says what to install
        return {}


ISOLATED: dict[type, Isolation] = {
    PythonFunctionGrader: Isolation(_sandbox_facts, lambda grader: grader.limits.cpu_s),
    MathGrader: Isolation(_math_facts),
    ProceduralGrader: Isolation(_procedural_facts),
}
