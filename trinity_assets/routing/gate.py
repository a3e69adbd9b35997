"""The gate: whether a head may be published, or the best single worker is asked always.

It is decided on train tasks alone, each routed by a head that was learnt without it (``crossfit``), against the single
worker that was best on what that head learnt from. The held-out tasks take no part, so that what is reported on them
stays the report of one look.
"""

from __future__ import annotations

import numpy as np

from trinity_assets.routing.crossfit import CrossFit, TrainTasks
from trinity_assets.routing.objective import charged
from trinity_assets.routing.specs import GateSpec
from trinity_assets.routing.statistics import (
    cross_fitted_interval,
    discordant,
    least_difference,
    paired_bootstrap,
    verdict,
)
from trinity_assets.spec import Spec


class GateResult(Spec):
    """What the gate saw of one trainer's heads, and what it decided.

    Attributes:
        trainer: whose heads.
        passed: whether the head may be published.
        reason: why, in a sentence.
        n: cross-fitted tasks.
        accuracy: of the heads on them; None where there are none, and so is what follows.
        reference_accuracy: of the best single workers on them.
        difference: accuracy of the heads above the best single workers', with its 95% interval from ``low`` to
            ``high``; ``p`` is that of the discordant tasks.
        saving: the share of the best single workers' cost that the heads save, an unknown cost counting as in
            ``objective.charged``; None where nothing is known of what a worker that was asked costs, or everything is
            free.
    """

    trainer: str
    passed: bool
    reason: str
    n: int
    accuracy: float | None
    reference_accuracy: float | None
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    saving: float | None


def judge(trainer: str, tasks: TrainTasks, fit: CrossFit, gate: GateSpec, *, resamples: int, seed: int) -> GateResult:
    """Whether the heads that ``trainer`` learnt beat the best single worker, or save enough and are not worse."""
    n = len(fit.rows)
    if not n:
        left = "tasks with every score known" if fit.folds > 1 else "folds to leave out"
        return GateResult(
            trainer=trainer, passed=False, reason=f"the train tasks hold too few {left} to cross-fit on", n=0,
            accuracy=None, reference_accuracy=None, difference=None, low=None, high=None, p=None, saving=None,
        )  # fmt: skip
    scores, costs = tasks.scores[fit.rows], charged(tasks.scores, tasks.costs)[fit.rows]
    here = np.arange(n)
    routed, single = scores[here, fit.chosen], scores[here, fit.reference]
    paid, single_paid = costs[here, fit.chosen], costs[here, fit.reference]
    saved = (1 - (gate.saving or 0.0)) * single_paid - paid
    differences = np.stack([routed - single, saved], axis=1)
    interval = paired_bootstrap(differences, resamples, seed, tasks.groups[fit.rows])
    low, high = cross_fitted_interval(differences.mean(axis=0), interval, fit.folds)
    known = np.isfinite(paid.sum() + single_paid.sum()) and single_paid.sum() > 0
    saving = float(1 - paid.sum() / single_paid.sum()) if known else None
    p = discordant(routed - single, tasks.groups[fit.rows]).p
    least = min(float(low[0]), least_difference(routed - single, tasks.groups[fit.rows]))
    passed, reason = _decide(gate, (float(low[0]), float(high[0])), p, least, saving, float(low[1]))
    return GateResult(
        trainer=trainer,
        passed=passed,
        reason=reason,
        n=n,
        accuracy=float(routed.mean()),
        reference_accuracy=float(single.mean()),
        difference=float((routed - single).mean()),
        low=float(low[0]),
        high=float(high[0]),
        p=p,
        saving=saving,
    )


def _decide(
    gate: GateSpec, interval: tuple[float, float], p: float, least: float, saving: float | None, saved_beyond: float
) -> tuple[bool, str]:
    """``least`` is the lower bound of the gain of a head that may not gain at all, and ``saved_beyond`` that of what is
    saved beyond the saving that is asked for, in USD per task.
    """
    low, high = interval
    gain = f"its cross-fitted gain over the best single worker is {100 * low:+.1f} to {100 * high:+.1f} points"
    if verdict(low, high, p) == "win":
        return True, gain
    if low > 0:
        gain += f", from too few tasks that tell them apart (p {p:.2f})"
    if gate.saving is None:
        return False, gain if low > 0 else f"{gain}, which is not above zero"
    wanted = f"{gate.saving:.0%} of the cost"
    if saving is None:
        return False, f"{gain}, and what it saves is unknown or nothing, so not {wanted}"
    if not saved_beyond > 0:
        return False, f"{gain}, and it saves {saving:.0%} of the cost, not surely {wanted}"
    if least < -gate.tolerance:
        worse = f"it may be worse by {-100 * least:.1f} points, more than the {100 * gate.tolerance:g} allowed"
        return False, f"{gain}, and these tasks cannot tell otherwise: {worse}"
    return True, f"{gain}, not worse by more than {100 * gate.tolerance:g}, and it saves {saving:.0%} of the cost"
