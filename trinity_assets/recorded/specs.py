"""How a recorded worker is declared. Light: read while definitions load."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from trinity_assets.benchmarks.formats import COMPRESSED, check_format
from trinity_assets.spec import Slug, Spec, digest
from trinity_assets.workers.specs import Price, WorkerSpec

RECORDED_VERSION = 1
"""The version of the code that reads outcomes: raise it when equal files would give other tables."""

RECORDED = "recorded"
"""The name under which tables and checkpoints list the provider of a worker that has none."""

FormatName = Literal["table", "lm_eval", "inspect", "routerbench", "llmrouter"]
Column = Annotated[str, Field(min_length=1)]
Plain = bool | int | float | str
Score = Annotated[float, Field(ge=0, le=1)]


class TaskKey(Spec):
    """The column that says which task a row is about: one of the three.

    ``id`` holds the task's id. ``question`` holds its question, compared after Unicode normalization (NFC) and with
    all white space alike. ``row`` holds the number of its row in the benchmark's source, counted from ``first``.
    """

    id: Column | None = None
    question: Column | None = None
    row: Column | None = None
    first: int = 0

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        given = [kind for kind in ("id", "question", "row") if getattr(self, kind) is not None]
        if len(given) != 1:
            raise ValueError("name the one column that tells the task: id, question or row")
        if self.first and given != ["row"]:
            raise ValueError("first is where the numbers in row begin; it means nothing beside id or question")
        return self

    @property
    def kind(self) -> Literal["id", "question", "row"]:
        """Which of the three is given."""
        return "id" if self.id is not None else "question" if self.question is not None else "row"

    @property
    def column(self) -> str:
        """The column that is named."""
        return str(getattr(self, self.kind))


class RecordedOutcomes(Spec):
    """Where one worker's outcomes on one benchmark are written, and which column is what.

    ``path`` (one file or several, in the formats of benchmark files) lies beside the catalog. A ``format`` other than
    ``table`` turns another program's log into rows and fills in columns; what is written here wins. ``where`` keeps the
    rows that hold these values. With a ``score`` the outcome is that number in [0, 1], taken as it is, and a
    ``completion`` is only kept; without one the completion is graded by the benchmark. ``values`` are the numbers that
    words stand for as scores, beside true and false, correct and incorrect.

    ``samples`` says what several rows of a task are: samples, whose ``mean`` a router learns from, or all but the
    ``first`` to be left out; without it they are an error. ``empty`` says whether a blank completion is ``no_answer``
    or ``missing``. Less than ``min_coverage`` of the benchmark's tasks with an outcome is an error.
    """

    path: Annotated[tuple[Column, ...], Field(min_length=1)] | Column
    format: FormatName = "table"
    task: TaskKey | None = None
    where: dict[str, Plain] = Field(default_factory=dict)
    score: Column | None = None
    values: dict[str, Score] = Field(default_factory=dict)
    completion: Column | None = None
    cost_usd: Column | None = None
    latency_s: Column | None = None
    input_tokens: Column | None = None
    output_tokens: Column | None = None
    samples: Literal["mean", "first"] | None = None
    empty: Literal["missing", "no_answer"] = "missing"
    min_coverage: float = Field(default=1.0, gt=0, le=1)

    @field_validator("path")
    @classmethod
    def _local_and_of_a_known_format(cls, path: tuple[str, ...] | str) -> tuple[str, ...] | str:
        for one in (path,) if isinstance(path, str) else path:
            if "://" in one:
                raise ValueError(f"{one} is a URL; fetch the file and give its path")
            if one.endswith((".pkl", ".pickle")):
                raise ValueError(f"{one} is a pickle, which runs code when it is read; write it as .parquet first")
            if one.endswith(".eval"):
                raise ValueError(f"{one} is no text; convert it: inspect log convert --to json --output-dir OUT {one}")
            check_format(one)
        return path

    @model_validator(mode="after")
    def _a_plain_table_is_described(self) -> Self:
        if self.format == "table" and self.task is None:
            raise ValueError("task is missing: the column that tells the task, as in `task: {id: task_id}`")
        if self.format == "table" and self.score is None and self.completion is None:
            raise ValueError("name the column of the score, or that of the completion to be graded")
        if self.values and self.score is None and self.completion is not None:
            raise ValueError("values are those of a score, and no score is named")
        return self

    @property
    def paths(self) -> tuple[str, ...]:
        """The files, in order."""
        return (self.path,) if isinstance(self.path, str) else self.path

    @property
    def measures(self) -> dict[str, str]:
        """What is named of cost, latency and tokens: measure -> column."""
        named = {name: getattr(self, name) for name in MEASURES}
        return {name: column for name, column in named.items() if column is not None}

    @property
    def columns(self) -> dict[str, str]:
        """Every column that is read, each with what names it."""
        key = {f"task: {self.task.kind}": self.task.column} if self.task else {}
        outcome = {name: getattr(self, name) for name in ("score", "completion") if getattr(self, name) is not None}
        return key | {f"where: {column}": column for column in self.where} | outcome | self.measures


MEASURES = ("cost_usd", "latency_s", "input_tokens", "output_tokens")


class RecordedCell(Spec):
    """A worker's outcomes on one benchmark with every column resolved, and the sha256 of each file, or "missing"."""

    outcomes: RecordedOutcomes
    files: tuple[str, ...]

    @property
    def takes_scores(self) -> bool:
        """Whether the outcomes are scores, rather than completions to be graded."""
        return self.outcomes.score is not None

    def identity(self) -> dict[str, Any]:
        """What decides the outcomes: the files' bytes and how they are read, not where they lie."""
        mapping = self.outcomes.model_dump(mode="json", exclude={"path"})
        endings = [PurePath(path.removesuffix(COMPRESSED)).suffix for path in self.outcomes.paths]
        return mapping | {"files": list(self.files), "read_as": endings}


class RecordedWorkerSpec(Spec):
    """A worker whose outcomes are read from files, per benchmark; it cannot be asked.

    ``model`` is what the files call it, where they tell several models apart, and what people are shown.
    """

    name: Slug
    model: str
    cells: Mapping[str, RecordedCell]
    price: Price | None = None

    def on(self, benchmarks: Iterable[str]) -> RecordedWorkerSpec:
        """This worker on some benchmarks only: what a router that learns from those depends on."""
        kept = set(benchmarks)
        return self.model_copy(update={"cells": {name: cell for name, cell in self.cells.items() if name in kept}})

    def cell_identity(self, benchmark: str) -> dict[str, Any]:
        """Everything that the outcomes on one benchmark depend on."""
        return {"provider": {"name": RECORDED}, "version": RECORDED_VERSION, **self.cells[benchmark].identity()}

    def provider_identity(self) -> dict[str, Any]:
        """What stands in a checkpoint where another worker's provider does: the files and how each is read."""
        return {"name": RECORDED, "cells": {name: cell.identity() for name, cell in sorted(self.cells.items())}}

    @property
    def digest(self) -> str:
        """The sha256 of the model's name and the identity of every cell."""
        cells = {name: self.cell_identity(name) for name in self.cells}
        return digest({"model": self.model, "cells": cells})


Worker = WorkerSpec | RecordedWorkerSpec
"""Whatever a pool may offer: a worker to ask, or one whose outcomes are recorded."""


def takes_scores(worker: Worker, benchmark: str) -> bool:
    """Whether a worker's scores on a benchmark are recorded, so that no answer of it is graded."""
    return isinstance(worker, RecordedWorkerSpec) and worker.cells[benchmark].takes_scores
