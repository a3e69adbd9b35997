"""What it will take to ask what is missing: calls, tokens, USD and minutes, from prices, limits and history.

Nothing is asked and nothing is written. A plan is an estimate: ``Basis`` says on what each cell's stands, and
``most_usd`` is what its calls can cost at most if each is made once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from trinity_assets.workers.budgets import worker_budget
from trinity_assets.workers.durations import Work, provider_minutes, step_minutes, worker_minutes
from trinity_assets.workers.history import History
from trinity_assets.workers.ledger import Ledger
from trinity_assets.workers.prices import cost_usd, known_price, most_tokens
from trinity_assets.workers.requests import AnswerRequest, answer_requests
from trinity_assets.workers.specs import Price, WorkerSpec

LATENCY_S = 10.0
"""Seconds per answer where the ledger knows none: some hundred tokens, at the 50 a second that many providers give."""


class Basis(StrEnum):
    """Where a cell's output tokens are expected from: its answers, its worker's other answers, or ``max_tokens``."""

    HISTORY = "history"
    WORKER = "worker"
    GUESS = "guess"


@dataclass(frozen=True)
class PlannedCell:
    """Whose answers are to be there: task id -> rendered prompt, in ``epoch``."""

    worker: WorkerSpec
    benchmark: str
    prompts: Mapping[str, str]
    epoch: int


@dataclass(frozen=True)
class CellPlan:
    """What one worker on one benchmark is expected to take.

    ``missing`` of ``total`` questions have no answer yet; one that an earlier cell asks, too, is not missing here.
    Tokens and ``seconds`` (the sum of all calls' time) are those of all ``missing`` answers; ``calls`` has those that
    fail, too, of which ``failed_unknown`` may cost something that nobody knows. ``most_input_tokens`` and
    ``most_output_tokens`` are what every missing answer together can take at most.
    """

    worker: WorkerSpec
    benchmark: str
    epoch: int
    total: int
    missing: int
    basis: Basis
    calls: float
    failed_unknown: float
    input_tokens: float
    output_tokens: float
    most_input_tokens: int
    most_output_tokens: int
    seconds: float
    price: Price | None

    @property
    def usd(self) -> float | None:
        """What is expected; None is unknown."""
        return self._cost(self.input_tokens, self.output_tokens)

    @property
    def most_usd(self) -> float | None:
        """What it is at most, if every answer takes one call; None is unknown."""
        most, expected = self._cost(self.most_input_tokens, self.most_output_tokens), self.usd
        return None if most is None or expected is None else max(most, expected)

    def _cost(self, inputs: float, outputs: float) -> float | None:
        if not self.missing:
            return 0.0
        return None if self.price is None else cost_usd(self.price, inputs, outputs)

    @property
    def minutes(self) -> float:
        """How long it takes alone, in one step."""
        return step_minutes(self.work)

    @property
    def work(self) -> Work:
        """What of it takes time."""
        return Work(self.worker, self.missing, self.calls, self.input_tokens + self.output_tokens, self.seconds)


@dataclass(frozen=True)
class Total:
    """Sums over some cells. ``unknown`` counts the cells whose cost is unknown and in neither sum of USD."""

    name: str
    missing: int
    calls: float
    failed_unknown: float
    input_tokens: float
    output_tokens: float
    usd: float
    most_usd: float
    unknown: int
    minutes: float


@dataclass(frozen=True)
class Allowance:
    """A budget beside what is planned under it: ``spent_usd`` counts against it already.

    ``worker`` is whose it is; None: that of a build.
    """

    worker: str | None
    budget_usd: float
    spent_usd: float
    planned: Total

    @property
    def left_usd(self) -> float:
        """What is left of it."""
        return max(0.0, self.budget_usd - self.spent_usd)

    @property
    def suffices(self) -> bool | None:
        """True: even for the upper bound; False: not for what is expected; None: it depends, or a cost is unknown."""
        if self.planned.usd > self.left_usd:
            return False
        return True if self.planned.most_usd <= self.left_usd and not self.planned.unknown else None


@dataclass(frozen=True)
class Plan:
    """The cells in the given order, and their sums.

    ``spent_usd`` is what has been spent of each worker's budget, where it has one.
    """

    cells: tuple[CellPlan, ...]
    spent_usd: Mapping[str, float] = field(default_factory=dict)

    @property
    def by_worker(self) -> list[Total]:
        """One sum for each worker."""
        return [
            _total(name, cells, worker_minutes([cell.work for cell in cells])) for name, cells in _by_worker(self.cells)
        ]

    @property
    def by_provider(self) -> list[Total]:
        """One sum for each provider."""
        return [
            _total(name, cells, provider_minutes([[cell.work for cell in own] for _, own in _by_worker(cells)]))
            for name, cells in _grouped(self.cells, lambda cell: cell.worker.provider.name)
        ]

    @property
    def all(self) -> Total:
        """Everything; providers are asked beside each other."""
        return _total("all", self.cells, max((one.minutes for one in self.by_provider), default=0.0))

    def allowances(self, run_usd: float | None) -> list[Allowance]:
        """The budget of one run, where there is one, and those of the workers, in which earlier runs count, too."""
        whole = [] if run_usd is None else [Allowance(None, run_usd, 0.0, self.all)]
        budgets = {cell.worker.name: cell.worker.budget_usd for cell in self.cells}
        return whole + [
            Allowance(total.name, budget, self.spent_usd.get(total.name, 0.0), total)
            for total in self.by_worker
            if (budget := budgets[total.name]) is not None
        ]


def plan(cells: Iterable[PlannedCell], ledger: Ledger | None, history: History) -> Plan:
    """What the missing answers of ``cells`` will take; with no ledger, all of them are missing.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    seen: set[str] = set()
    plans = []
    for cell in cells:
        requests = answer_requests(cell.worker, cell.prompts, cell.epoch)
        distinct = {request.digest: request for request in requests}
        new = [digest for digest in distinct if digest not in seen]
        settled = ledger.settled(new) if ledger else {}
        seen.update(distinct)
        missing = [distinct[digest] for digest in new if digest not in settled]
        plans.append(_plan_cell(cell, len(distinct), missing, history))
    return Plan(tuple(plans), _spent(plans, ledger) if ledger else {})


def _spent(cells: Sequence[CellPlan], ledger: Ledger) -> dict[str, float]:
    """What has been spent of the workers' budgets, in USD, in the epochs that ``cells`` are in."""
    budgets = {
        worker_budget(cell.worker.budget_usd, cell.worker.name, cell.epoch): cell.worker.name
        for cell in cells
        if cell.worker.budget_usd is not None
    }
    spent: dict[str, float] = {}
    with ledger.database.translated("read"), ledger.database.reading() as connection:
        for budget, worker in budgets.items():
            spent[worker] = spent.get(worker, 0.0) + budget.standing(connection).spent_usd
    return spent


def _plan_cell(cell: PlannedCell, total: int, missing: Sequence[AnswerRequest], history: History) -> CellPlan:
    worker, count = cell.worker, len(missing)
    own, elsewhere = history.of_cell(worker.name, cell.benchmark), history.of_worker(worker.name)
    most = [most_tokens(request) for request in missing]
    most_input, most_output = sum(inputs for inputs, _ in most), sum(outputs for _, outputs in most)
    basis, output = _expected_output(worker, own.output_tokens.mean, elsewhere.output_tokens.mean)
    inputs = _first(own.input_tokens.mean, history.of_benchmark(cell.benchmark).input_tokens.mean)
    calls = history.of_provider(worker.provider.name)
    return CellPlan(
        worker=worker,
        benchmark=cell.benchmark,
        epoch=cell.epoch,
        total=total,
        missing=count,
        basis=basis,
        calls=count * calls.calls_per_answer,
        failed_unknown=count * calls.failed_unknown_per_answer,
        input_tokens=most_input if inputs is None else count * inputs,
        output_tokens=count * output,
        most_input_tokens=most_input,
        most_output_tokens=most_output,
        seconds=count * (_first(own.latency_s.mean, elsewhere.latency_s.mean) or LATENCY_S),
        price=known_price(worker) if count else worker.price,
    )


def _expected_output(worker: WorkerSpec, own: float | None, elsewhere: float | None) -> tuple[Basis, float]:
    """Tokens of one answer: never more than the worker may write, which an earlier ``max_tokens`` may have let it."""
    limit = float(worker.sampling.max_tokens)
    if own is not None:
        return Basis.HISTORY, min(own, limit)
    if elsewhere is not None:
        return Basis.WORKER, min(elsewhere, limit)
    return Basis.GUESS, limit


def _first(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)


def _total(name: str, cells: Sequence[CellPlan], minutes: float) -> Total:
    return Total(
        name,
        missing=sum(cell.missing for cell in cells),
        calls=sum(cell.calls for cell in cells),
        failed_unknown=sum(cell.failed_unknown for cell in cells),
        input_tokens=sum(cell.input_tokens for cell in cells),
        output_tokens=sum(cell.output_tokens for cell in cells),
        usd=sum(cell.usd or 0.0 for cell in cells),
        most_usd=sum(cell.most_usd or 0.0 for cell in cells),
        unknown=sum(cell.usd is None for cell in cells),
        minutes=minutes,
    )


def _by_worker(cells: Iterable[CellPlan]) -> list[tuple[str, list[CellPlan]]]:
    return _grouped(cells, lambda cell: cell.worker.name)


def _grouped(cells: Iterable[CellPlan], name: Callable[[CellPlan], str]) -> list[tuple[str, list[CellPlan]]]:
    groups: dict[str, list[CellPlan]] = {}
    for cell in cells:
        groups.setdefault(name(cell), []).append(cell)
    return list(groups.items())
