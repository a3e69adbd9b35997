"""A plan in words: a table of its cells, one of its sums, and what the tables do not say."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table

from trinity_assets.printing import add_row, new_table
from trinity_assets.texts import counted
from trinity_assets.workers.operations import Operations
from trinity_assets.workers.planning import LATENCY_S, Allowance, Plan, Total

UNKNOWN = "unknown"
LEAST_USD = 0.0001
LEAST_MINUTES = 0.1
MILLION = 1_000_000

_NUMBERS = ("missing", "calls", "input", "output", "USD", "at most", "min")


def plan_tables(plan: Plan) -> list[Table]:
    """The cells, and the sums by worker, by provider and over all; no tables where there is no cell."""
    if not plan.cells:
        return []
    cells = new_table("worker", "benchmark", "missing", "from", *_NUMBERS[2:], right=_NUMBERS)
    for cell in plan.cells:
        add_row(
            cells,
            cell.worker.name,
            cell.benchmark,
            f"{cell.missing:,}/{cell.total:,}",
            str(cell.basis) if cell.missing else "-",
            _tokens(cell.input_tokens),
            _tokens(cell.output_tokens),
            _usd(cell.usd),
            _usd(cell.most_usd),
            _minutes(cell.minutes),
        )
    totals = new_table("total", *_NUMBERS, right=_NUMBERS)
    for heading, sums in (("", plan.by_worker), ("provider", plan.by_provider), ("", [plan.all])):
        for place, one in enumerate(sums, start=1):
            add_row(totals, *_total_row(heading, one), end_section=place == len(sums))
    return [cells, totals]


def _total_row(heading: str, total: Total) -> Iterator[str]:
    yield f"{heading} {total.name}".strip()
    yield f"{total.missing:,}"
    yield f"{total.calls:,.0f}"
    yield _tokens(total.input_tokens)
    yield _tokens(total.output_tokens)
    for usd in (total.usd, total.most_usd):
        yield _with_unknown(usd, total.unknown)
    yield _minutes(total.minutes)


def plan_remarks(plan: Plan, recorded: int, operations: Operations) -> Iterator[str]:
    """What the tables do not say; ``recorded`` counts the workers of the selection that are not asked."""
    if recorded:
        workers = counted(recorded, "recorded worker is", "recorded workers are")
        yield f"{workers} not listed: what they did is read from files and costs nothing."
    if not plan.cells:
        yield "The selection holds no answers of a worker that is asked."
        return
    yield (
        "from: output tokens as in the cell's answers (history), the worker's others (worker), or max_tokens (guess)."
    )
    yield f"An answer takes as long as in the ledger, {LATENCY_S:.0f} s where it has none; providers work side by side."
    if unpriced := sorted({cell.worker.name for cell in plan.cells if cell.usd is None}):
        price = "price: {input_per_mtok: USD, output_per_mtok: USD}"
        yield (
            f"No price is known of {', '.join(unpriced)}, so a build with a budget does not ask there; give each its "
            f"own in workers.yaml: {price}"
        )
    for one in plan.by_provider:
        if one.failed_unknown >= 1:
            yield (
                f"Of {one.name}'s calls about {one.failed_unknown:,.0f} will fail, by its history, at a cost nobody "
                "knows; they are in no sum of USD."
            )
    if sentinel := operations.sentinel:
        questions = counted(sentinel.tasks * sentinel.repeats, "question")
        yield f"Not listed: each worker's sentinel, up to {questions} at its first build and at every tick."
    run = operations.budget
    for allowance in plan.allowances(run.run_usd if run else None):
        yield _judged(allowance)


def _judged(allowance: Allowance) -> str:
    """Whether a budget will do, in a sentence."""
    whose = f"worker {allowance.worker} in an epoch" if allowance.worker else "a build"
    spent = f", of which {_usd(allowance.spent_usd)} is spent" if allowance.spent_usd else ""
    stated = f"The budget of {whose} is {_usd(allowance.budget_usd)} USD{spent}"
    if allowance.suffices is False:
        return f"{stated}: it will not suffice; what is left is not asked until it is raised."
    if allowance.suffices:
        return f"{stated}: it suffices."
    unknown = allowance.planned.unknown
    but = "what has no price is not asked" if unknown else "it may not, if every answer is as long as it may be"
    return f"{stated}: it suffices for what is {'known' if unknown else 'expected'}; {but}."


def _with_unknown(usd: float, unknown: int) -> str:
    if not unknown:
        return _usd(usd)
    return f"{_usd(usd)} + {UNKNOWN}" if usd else UNKNOWN


def _usd(amount: float | None) -> str:
    """Cents do for dollars; less than a dollar is shown to the hundredth of a cent, and nothing as a lone 0."""
    if amount is None:
        return UNKNOWN
    if amount >= 1 or not amount:
        return f"{amount:,.2f}" if amount else "0"
    return f"{amount:.4f}" if amount >= LEAST_USD else f"<{LEAST_USD}"


def _tokens(count: float) -> str:
    if count >= MILLION:
        return f"{count / MILLION:,.1f}M"
    return f"{count / 1000:,.1f}k" if count >= MILLION / 100 else f"{count:,.0f}"


def _minutes(minutes: float) -> str:
    if not minutes:
        return "0"
    return f"{minutes:,.1f}" if minutes >= LEAST_MINUTES else f"<{LEAST_MINUTES}"
