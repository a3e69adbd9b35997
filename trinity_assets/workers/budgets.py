"""Budgets: what a run and a worker may cost, counted over every process that uses the ledger.

A call is let through when what is spent, what the calls under way could cost at most, and what it could cost itself fit
in every budget. A call of unknown cost (a timeout, a killed process) counts with the most that it could have cost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa

from trinity_assets.workers.ledger_tables import CALLS, PERMITS

_SPENT = sa.func.coalesce(sa.func.sum(sa.func.coalesce(CALLS.c.cost_usd, CALLS.c.reserved_usd, 0.0)), 0.0)
_RESERVED = sa.func.coalesce(sa.func.sum(sa.func.coalesce(PERMITS.c.reserved_usd, 0.0)), 0.0)


@dataclass(frozen=True)
class Budget:
    """At most ``usd`` for the calls that have all of ``columns`` (name -> value); ``label`` names whose they are.

    ``answers`` says whether those of cells are meant, or those that are asked for another purpose, whose benchmarks
    have a slash in their name and epochs of their own; None: both.
    """

    label: str
    usd: float
    columns: tuple[tuple[str, Any], ...]
    answers: bool | None = None

    def standing(self, connection: sa.Connection) -> Standing:
        """How much of it is spent and reserved now."""
        return Account(self).standing(connection)

    def theirs(self, table: sa.Table) -> list[sa.ColumnElement[bool]]:
        """What holds for their rows of ``calls`` or ``permits``."""
        conditions = [table.c[name] == value for name, value in self.columns]
        if self.answers is not None:
            with_slash = table.c.benchmark.contains("/")
            conditions.append(~with_slash if self.answers else with_slash)
        return conditions


class Account:
    """What is spent of a budget, read anew at each look only from where the last one ended.

    Calls are kept under the lock of the permits, as looks are made, so that none can come in behind a look. A call that
    was taken for killed counts at its most until the account is opened anew, also when it came out after all.
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._spent_usd = 0.0
        self._seen = 0

    def standing(self, connection: sa.Connection) -> Standing:
        """How much is spent and reserved now."""
        since = sa.select(_SPENT, sa.func.max(CALLS.c.id)).where(CALLS.c.id > self._seen, *self._budget.theirs(CALLS))
        spent_usd, newest = connection.execute(since).one()
        self._spent_usd += float(spent_usd)
        self._seen = newest or self._seen
        under_way = PERMITS.c.ended_at.is_(None), *self._budget.theirs(PERMITS)
        reserved_usd, calls = connection.execute(sa.select(_RESERVED, sa.func.count()).where(*under_way)).one()
        return Standing(self._budget, self._spent_usd, float(reserved_usd), int(calls))


@dataclass(frozen=True)
class Standing:
    """A budget with what is spent of it and what its ``calls_under_way`` have reserved, in USD."""

    budget: Budget
    spent_usd: float
    reserved_usd: float
    calls_under_way: int

    def fits(self, usd: float) -> bool:
        """Whether a call of at most ``usd`` still fits."""
        return self.spent_usd + self.reserved_usd + usd <= self.budget.usd

    def with_one_more(self, usd: float) -> Standing:
        """The same with one more call under way, of at most ``usd``."""
        return replace(self, reserved_usd=self.reserved_usd + usd, calls_under_way=self.calls_under_way + 1)

    def refusal(self, usd: float) -> str:
        """Why a call of at most ``usd`` is not made."""
        return (
            f"the budget of {self.budget.usd:g} USD for {self.budget.label} is used up: {self.spent_usd:.4g} USD are "
            f"spent (calls of unknown cost counted at their most), and the next call may cost {usd:.4g} USD; raise it "
            "and run again to ask for the rest"
        )


def run_budget(usd: float, run: str) -> Budget:
    """What one build may cost over all workers."""
    return Budget("this run", usd, (("run", run),))


def worker_budget(usd: float, worker: str, epoch: int, purpose: str | None = None) -> Budget:
    """What one worker may cost in one epoch of its answers, or of what is asked for a ``purpose``, whoever asks."""
    whose = f"worker {worker} in epoch {epoch}" + (f" of its {purpose}" if purpose else "")
    return Budget(whose, usd, (("worker", worker), ("epoch", epoch)), answers=purpose is None)
