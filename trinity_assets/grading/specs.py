"""What a benchmark declares about grading: the grader, and the score of an outcome that is no good answer."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from trinity_assets.sandbox.specs import ProgramLimits
from trinity_assets.spec import Spec

GoldKeys = tuple[frozenset[str], ...]
"""Alternatives of the keys that a gold payload has to have."""

_ANSWER: GoldKeys = (frozenset({"answer"}),)


class ExactGrader(Spec):
    """A short answer equals an accepted one after normalizing; numeric golds are compared as numbers."""

    gold_keys: ClassVar[GoldKeys] = _ANSWER
    version: ClassVar[int] = 3
    kind: Literal["exact"]


class NumberGrader(Spec):
    """The number that the completion settles on equals the gold number exactly."""

    gold_keys: ClassVar[GoldKeys] = _ANSWER
    version: ClassVar[int] = 3
    kind: Literal["number"]


class PythonFunctionGrader(Spec):
    """The completed function passes the benchmark's own checks; it runs in a sandbox, the checks outside.

    ``allow_unsandboxed`` lets it run as a bare process where the machine offers no sandbox. It says nothing about a
    verdict, so it is in no digest.
    """

    gold_keys: ClassVar[GoldKeys] = (frozenset({"test", "entry_point"}), frozenset({"tests"}))
    version: ClassVar[int] = 3
    kind: Literal["python_function"]
    limits: ProgramLimits = ProgramLimits()
    allow_unsandboxed: bool = False


class ChoiceGrader(Spec):
    """The option that the completion settles on is the right one, named by its label or by its text."""

    gold_keys: ClassVar[GoldKeys] = (frozenset({"answer", "choices", "labels"}),)
    version: ClassVar[int] = 2
    kind: Literal["choice"]


class MathGrader(Spec):
    """The mathematical answer equals the gold LaTeX, as strings, as exact numbers, or as math-verify judges."""

    gold_keys: ClassVar[GoldKeys] = _ANSWER
    version: ClassVar[int] = 2
    kind: Literal["math"]


class ProceduralGrader(Spec):
    """The answer's score is what the scorer of the reasoning-gym data set that generated the task gives it."""

    gold_keys: ClassVar[GoldKeys] = (frozenset({"dataset", "entry"}),)
    version: ClassVar[int] = 2
    kind: Literal["procedural"]


class RecordedGrader(Spec):
    """Nothing is graded, and no gold is needed: every worker's scores on the benchmark are recorded."""

    gold_keys: ClassVar[GoldKeys] = (frozenset(),)
    version: ClassVar[int] = 1
    kind: Literal["recorded"]


GraderSpec = Annotated[
    ExactGrader | NumberGrader | PythonFunctionGrader | ChoiceGrader | MathGrader | ProceduralGrader | RecordedGrader,
    Field(discriminator="kind"),
]

Settled = Literal["unsolved", "missing"]


class Settlement(Spec):
    """What each settled outcome that is not an answer counts as: score 0 (``unsolved``) or no score (``missing``)."""

    no_answer: Settled = "unsolved"
    truncated: Settled = "unsolved"
    refused: Settled = "unsolved"
    context_exceeded: Settled = "unsolved"
    timed_out: Settled = Field(
        default="missing",
        description="Tasks that ran into the worker's time limit whenever two runs asked; missing: asked again.",
    )

    @property
    def settles_timeouts(self) -> bool:
        """Whether a task that always runs into the worker's time limit is settled, rather than asked again."""
        return self.timed_out == "unsolved"

    def score(self, status: str) -> float | None:
        """The score of a settled status other than ``answered``; None is missing."""
        verdict: Settled = getattr(self, status)
        return 0.0 if verdict == "unsolved" else None


TAKEN_AS_THEY_ARE: dict[str, Any] = {"rule": "recorded", "version": 1}
"""The grading of scores that were recorded: none."""

DRIFT_VERSION = 1
"""Raise it when equal answers would make another report of what changed in the workers."""


class GradingSpec(Spec):
    """Everything that a solve table depends on beside answers and gold."""

    grader: GraderSpec
    settlement: Settlement = Settlement()

    def identity(self) -> dict[str, Any]:
        """The spec with the grader's version: what changes a verdict."""
        declared = self.model_dump(mode="json", exclude={"grader": {"allow_unsandboxed"}})
        return declared | {"grader_version": self.grader.version}
