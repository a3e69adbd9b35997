"""What a run's tags say to its steps: which build it belongs to, what it may cost, whether it opens a new epoch.

Tags, because they are shown on the run's page, survive a re-execution, and can be given by hand at a launch.
"""

from __future__ import annotations

import math
import uuid

import dagster as dg

from trinity_assets.errors import BudgetError
from trinity_assets.workers.operations import Operations

BUILD_TAG = "trinity/build"
"""One build is several runs, wave after wave; what they cost is counted together."""

BUDGET_TAG = "trinity/budget_usd"
"""What the build or run may cost, in USD; stands before the catalog's budget."""

NEW_EPOCH_TAG = "trinity/new_epoch"
"""Names who asks everything again; runs with the same name, such as a re-execution, resume one epoch."""


def build_tags(budget_usd: float | None) -> dict[str, str]:
    """The tags of every run of a new build, which may cost ``budget_usd`` (None: what the catalog says).

    Raises:
        BudgetError: that is no amount.
    """
    budget = {} if budget_usd is None else {BUDGET_TAG: str(spendable_usd(budget_usd, "the budget"))}
    return {BUILD_TAG: uuid.uuid4().hex, **budget}


def new_epoch_name(run: dg.DagsterRun) -> str | None:
    """Who wants a new epoch of what ``run`` asks; None: what it asks belongs to the present one."""
    return run.tags.get(NEW_EPOCH_TAG)


def paying_run(run: dg.DagsterRun) -> str:
    """What the ledger calls the run: the build it belongs to, else its own id."""
    return run.tags.get(BUILD_TAG) or run.run_id


def run_budget_usd(run: dg.DagsterRun, operations: Operations) -> float | None:
    """What ``run`` may cost in USD, None where nothing is said.

    Raises:
        BudgetError: the run's tag is no amount.
    """
    written = run.tags.get(BUDGET_TAG)
    if written is None:
        return operations.budget.run_usd if operations.budget else None
    return spendable_usd(written, f"the run's tag {BUDGET_TAG}")


def spendable_usd(written: str | float, named: str) -> float:
    """The amount in USD that ``written`` says; ``named`` is what it is the value of.

    Raises:
        BudgetError: it is no number, not above 0, or not finite.
    """
    try:
        amount = float(written)
    except ValueError:
        amount = math.nan
    if not (math.isfinite(amount) and amount > 0):
        raise BudgetError(
            f"{named} is {written!r}; give a number of USD above 0, or leave it out for the one that holds without it. "
            "Nothing was asked"
        )
    return amount
