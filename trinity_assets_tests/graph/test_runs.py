"""What a run's tags say, and what they cannot say."""

from __future__ import annotations

import dagster as dg
import pytest

from trinity_assets.defs.runs import BUDGET_TAG, BUILD_TAG, build_tags, run_budget_usd
from trinity_assets.errors import BudgetError
from trinity_assets.workers.operations import Operations, RunBudget

DECLARED = Operations(budget=RunBudget(run_usd=25))


def run(**tags: str) -> dg.DagsterRun:
    return dg.DagsterRun(job_name="everything", tags=tags)


def test_a_runs_budget_is_that_of_its_build_else_of_the_catalog_else_none() -> None:
    tags = build_tags(0.5)
    assert set(tags) == {BUILD_TAG, BUDGET_TAG}
    assert run_budget_usd(run(**tags), DECLARED) == 0.5
    assert set(build_tags(None)) == {BUILD_TAG}
    assert run_budget_usd(run(), DECLARED) == 25
    assert run_budget_usd(run(), Operations()) is None


@pytest.mark.parametrize("budget", [0.0, -1.0, float("inf"), float("nan")])
def test_no_amount_is_no_budget_of_a_build(budget: float) -> None:
    with pytest.raises(BudgetError, match=f"^the budget is {budget!r}; give a number of USD above 0"):
        build_tags(budget)


@pytest.mark.parametrize("written", ["0", "-1", "inf", "nan", "five", ""])
def test_no_amount_is_no_budget_of_a_run_that_was_launched_elsewhere(written: str) -> None:
    with pytest.raises(BudgetError, match=f"^the run's tag trinity/budget_usd is {written!r}; give a number of USD"):
        run_budget_usd(run(**{BUDGET_TAG: written}), DECLARED)
