"""What a run's tags say to its steps: which build it belongs to, what it may cost, whether it opens a new epoch.

Tags, because they are shown on the run's page, survive a re-execution, and can be given by hand at a launch.
"""

from __future__ import annotations

import uuid

import dagster as dg

from trinity_assets.errors import SelectionError
from trinity_assets.workers.operations import Operations

BUILD_TAG = "trinity/build"
"""One build is several runs, wave after wave; what they cost is counted together."""

BUDGET_TAG = "trinity/budget_usd"
"""What the build or run may cost, in USD; stands before the catalog's budget."""

NEW_EPOCH_TAG = "trinity/new_epoch"
"""Names who asks everything again; runs with the same name, such as a re-execution, resume one epoch."""


def build_tags(budget_usd: float | None) -> dict[str, str]:
    """The tags of every run of a new build, which may cost ``budget_usd`` (None: what the catalog says)."""
    budget = {} if budget_usd is None else {BUDGET_TAG: str(budget_usd)}
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
        SelectionError: the run's tag is not a positive number.
    """
    written = run.tags.get(BUDGET_TAG)
    if written is None:
        return operations.budget.run_usd if operations.budget else None
    try:
        budget = float(written)
    except ValueError:
        budget = 0.0
    if not 0 < budget < float("inf"):
        raise SelectionError(f"the run's tag {BUDGET_TAG} is {written!r}; give a number of USD above 0")
    return budget
