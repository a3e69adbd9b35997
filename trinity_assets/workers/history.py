"""What the ledger tells of answers to come: tokens and seconds per settled answer, calls per answer. Reads only.

Averages are over the answers whose provider counted; what was not counted is no zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import sqlalchemy as sa

from trinity_assets.workers.ledger import Ledger
from trinity_assets.workers.ledger_tables import ANSWERS, CALLS, PROBE
from trinity_assets.workers.outcomes import FAILURES, Status

Cell = tuple[str, str]
"""Worker and benchmark, by name."""


@dataclass(frozen=True)
class Average:
    """The mean of ``count`` values; None where there are none."""

    total: float = 0.0
    count: int = 0

    @property
    def mean(self) -> float | None:
        """Their mean."""
        return self.total / self.count if self.count else None

    def __add__(self, other: Average) -> Average:
        return Average(self.total + other.total, self.count + other.count)


@dataclass(frozen=True)
class Averages:
    """Of settled answers: tokens, and seconds of the call that gave each."""

    input_tokens: Average = Average()
    output_tokens: Average = Average()
    latency_s: Average = Average()

    def __add__(self, other: Averages) -> Averages:
        return Averages(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.latency_s + other.latency_s,
        )


@dataclass(frozen=True)
class ProviderCalls:
    """A provider's calls that asked a task, the answers that settled, and the failed calls of unknown cost."""

    calls: int
    answers: int
    failed_unknown: int

    @property
    def calls_per_answer(self) -> float:
        """How many calls an answer took, failed ones included; 1 where nothing settled yet."""
        return max(1.0, self.calls / self.answers) if self.answers else 1.0

    @property
    def failed_unknown_per_answer(self) -> float:
        """How many of them failed and may have cost something."""
        return self.failed_unknown / self.answers if self.answers else 0.0


@dataclass(frozen=True)
class History:
    """The averages of each cell, and the calls of each provider, by name."""

    cells: Mapping[Cell, Averages] = field(default_factory=dict)
    providers: Mapping[str, ProviderCalls] = field(default_factory=dict)

    def of_cell(self, worker: str, benchmark: str) -> Averages:
        """This worker on this benchmark."""
        return self.cells.get((worker, benchmark), Averages())

    def of_worker(self, worker: str) -> Averages:
        """This worker on any benchmark."""
        return self._sum(lambda cell: cell[0] == worker)

    def of_benchmark(self, benchmark: str) -> Averages:
        """Any worker on this benchmark."""
        return self._sum(lambda cell: cell[1] == benchmark)

    def of_provider(self, provider: str) -> ProviderCalls:
        """The calls of one provider."""
        return self.providers.get(provider, ProviderCalls(0, 0, 0))

    def _sum(self, wanted: Callable[[Cell], bool]) -> Averages:
        return sum((found for cell, found in self.cells.items() if wanted(cell)), Averages())


def read_history(ledger: Ledger) -> History:
    """The history of every worker in ``ledger``.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    with ledger.database.translated("read"), ledger.database.reading() as connection:
        cells = {(row[0], row[1]): _averages(row[2:]) for row in connection.execute(_BY_CELL)}
        answers = {row[0]: row[1] for row in connection.execute(_ANSWERS_BY_PROVIDER)}
        calls = {row[0]: (row[1], row[2]) for row in connection.execute(_CALLS_BY_PROVIDER)}
    providers = {name: ProviderCalls(made, answers.get(name, 0), failed) for name, (made, failed) in calls.items()}
    return History(cells, providers)


_COUNTED = (ANSWERS.c.input_tokens, ANSWERS.c.output_tokens, ANSWERS.c.latency_s)
_BY_CELL = sa.select(
    ANSWERS.c.worker,
    ANSWERS.c.benchmark,
    *(number for column in _COUNTED for number in (sa.func.sum(column), sa.func.count(column))),
).group_by(ANSWERS.c.worker, ANSWERS.c.benchmark)
_ANSWERS_BY_PROVIDER = sa.select(ANSWERS.c.provider, sa.func.count()).group_by(ANSWERS.c.provider)
_FAILED_UNKNOWN = CALLS.c.status.in_(sorted(str(status) for status in FAILURES)) & CALLS.c.cost_usd.is_(None)
_CALLS_BY_PROVIDER = (
    sa.select(CALLS.c.provider, sa.func.count(), sa.func.sum(sa.case((_FAILED_UNKNOWN, 1), else_=0)))
    # A wrong key or a withdrawn model stops the asking, and is no rate at which calls are made again.
    .where(CALLS.c.attempt != PROBE, CALLS.c.status != str(Status.FAILED_FATAL))
    .group_by(CALLS.c.provider)
)


def _averages(row: Iterable[float | None]) -> Averages:
    values = list(row)
    return Averages(*(Average(float(values[at] or 0.0), int(values[at + 1] or 0)) for at in range(0, len(values), 2)))
