"""Pictures of a router: what its workers solve, how its search converged, whom it asks, and whether that pays.

Each function returns a PNG, kept small enough to be embedded in an asset's metadata.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from trinity_assets.errors import TrainingError
from trinity_assets.routing.baselines import mean_known
from trinity_assets.routing.frontier import non_decreasing_hull
from trinity_assets.routing.head import BestSingle
from trinity_assets.routing.report import points
from trinity_assets.routing.results import REFERENCE, Evaluation, PolicyResult
from trinity_assets.routing.specs import trainer_of
from trinity_assets.routing.table import score_matrix
from trinity_assets.routing.theme import ACCENT, FAINT, INK, SERIES, beside_points, figure, legend_below, plot
from trinity_assets.routing.trainers.head import TrainingRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

MAX_COLUMNS = 16
"""Categories shown in the heat map; the largest are kept."""


@plot
def solve_rates_plot(table: pd.DataFrame, workers: Sequence[str]) -> Figure:
    """A heat map of mean known score: a row per worker, a column per benchmark and category, and one for all."""
    columns, rates = _solve_rates(table, workers)
    drawing, axes = figure(2.4 + 0.62 * len(columns), 1.7 + 0.36 * len(workers), "Solve rate by worker and category")
    axes.imshow(np.nan_to_num(rates, nan=0.0), cmap=_blues(), vmin=0, vmax=1, aspect="auto")
    best = np.nanmax(np.where(np.isnan(rates), -1.0, rates), axis=0)
    for (row, column), rate in np.ndenumerate(rates):
        unknown = np.isnan(rate)
        axes.text(
            column,
            row,
            "?" if unknown else f"{100 * rate:.0f}",
            ha="center",
            va="center",
            color="white" if rate > 0.55 else INK,
            fontweight="bold" if rate == best[column] and not unknown else "normal",
        )
    axes.axvline(0.5, color="white", linewidth=4)
    axes.set_xticks(range(len(columns)), columns, rotation=35, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(workers)), workers)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("percent solved, bold: best of the column", color=FAINT, loc="left")
    return drawing


@plot
def convergence_plot(trainer: str, record: TrainingRecord, best_single: BestSingle) -> Figure:
    """Reward on train over an evolution strategy's generations, beside the best single worker's reward there."""
    drawing, axes = figure(6.4, 3.6, f"{trainer}: reward on train per generation")
    generations = [row["generation"] for row in record.history]
    best, mean = ([row[key] for row in record.history] for key in ("best", "mean"))
    axes.fill_between(generations, mean, best, color=SERIES[0], alpha=0.15, linewidth=0)
    axes.plot(generations, best, color=SERIES[0], linewidth=1, label="best candidate")
    axes.plot(generations, mean, color=SERIES[0], linewidth=2.2, label="mean of the candidates")
    axes.axhline(
        best_single.reward, color=ACCENT, linewidth=1.4, linestyle="--", label=f"best single: {best_single.worker}"
    )
    axes.plot(
        generations[-1:], [record.reward], marker="D", color=SERIES[1], linestyle="", label="head (distribution mean)"
    )
    _percent(axes.yaxis)
    axes.set_xlabel("generation")
    axes.set_xlim(0, max(generations, default=1) * 1.02)
    axes.grid(axis="y")
    legend_below(drawing, axes, columns=2)
    return drawing


@plot
def shares_plot(evaluation: Evaluation) -> Figure:
    """How often each policy asks each worker on the test tasks, as stacked bars."""
    policies = [result for result in evaluation.policies if result.name not in ("random", REFERENCE, "hindsight")]
    drawing, axes = figure(
        7.2, 1.4 + 0.34 * len(policies) + 0.07 * len(evaluation.workers), "Whom each policy asks (held-out tasks)"
    )
    left = np.zeros(len(policies))
    for number, worker in enumerate(evaluation.workers):
        shares = np.array([result.shares[worker] for result in policies])
        bars = axes.barh(range(len(policies)), shares, left=left, height=0.72, color=SERIES[number % len(SERIES)])
        labels = [f"{share:.0%}" if share >= 0.06 else "" for share in shares]
        axes.bar_label(bars, labels, label_type="center", color="white", fontsize=8)
        bars.set_label(worker)
        left += shares
    axes.set_yticks(range(len(policies)), [result.name for result in policies])
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    _percent(axes.xaxis)
    axes.spines[:].set_visible(False)
    legend_below(drawing, axes, columns=3)
    return drawing


@plot
def comparison_plot(evaluation: Evaluation) -> Figure:
    """Every policy's difference to the best single worker with its 95% interval, and its accuracy beside it."""
    policies = [result for result in evaluation.policies if result.name != REFERENCE]
    reference = evaluation.policy(REFERENCE)
    title = f"Against the best single worker\n{evaluation.reference_worker}: {reference.accuracy:.1%} on held-out tasks"
    drawing, axes = figure(7.2, 1.6 + 0.32 * len(policies), title)
    axes.axvline(0, color=ACCENT, linewidth=1.4)
    for row, result in enumerate(policies):
        color = {"head": SERIES[0], "baseline": INK, "bound": FAINT}[result.kind]
        axes.plot([100 * result.low, 100 * result.high], [row, row], color=color, linewidth=2.4, solid_capstyle="round")
        axes.plot([100 * result.difference], [row], marker="o", color=color, markersize=7)
    axes.set_yticks(range(len(policies)), [result.name for result in policies])
    right = axes.secondary_yaxis("right")
    right.set_yticks(range(len(policies)), [_outcome(result) for result in policies])
    right.spines[:].set_visible(False)
    right.tick_params(length=0)
    axes.set_ylim(len(policies) - 0.4, -0.6)
    axes.set_xlabel(f"percentage points with 95% interval, {evaluation.n_test} held-out tasks")
    axes.grid(axis="x")
    axes.spines["left"].set_visible(False)
    return drawing


@plot
def chosen_plot(evaluation: Evaluation, head: str) -> Figure:
    """Whom a head asked, against who was best on that task, in tasks; on the diagonal it asked as well as one can."""
    counts = np.array(next(one.counts for one in evaluation.choices if one.head == head))
    decided = evaluation.n_test - counts[:, -1].sum()
    detail = f"a best worker asked on {np.trace(counts):.0f} of {decided:.0f} held-out tasks that tell workers apart"
    drawing, axes = figure(
        2.6 + 0.72 * counts.shape[1], 1.9 + 0.36 * len(counts), f"{head}: asked, against best\n{detail}"
    )
    axes.imshow(counts, cmap=_blues(), vmin=0, vmax=max(counts.max(), 1.0), aspect="auto")
    for (row, column), count in np.ndenumerate(counts):
        axes.text(
            column,
            row,
            f"{count:.0f}" if count == round(count) else f"{count:.1f}",
            ha="center",
            va="center",
            color="white" if count > 0.55 * counts.max() else INK,
            fontweight="bold" if row == column else "normal",
        )
    axes.axvline(len(counts) - 0.5, color="white", linewidth=4)
    columns = [*evaluation.workers, "all alike"]
    axes.set_xticks(range(len(columns)), columns, rotation=35, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(counts)), evaluation.workers)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("best on the task; in parts, where several are and none of them was asked", color=FAINT, loc="left")
    axes.set_ylabel("asked", color=FAINT, loc="top")
    return drawing


@plot
def frontier_plot(evaluation: Evaluation) -> Figure:
    """Accuracy against cost: the single workers and what lies between them, the baselines, and each trainer's heads.

    Raises:
        TrainingError: the evaluation has no frontier.
    """
    if evaluation.frontier is None:
        raise TrainingError("there is no frontier to draw: a worker's cost is unknown, or all of them cost the same")
    drawing, axes = figure(7.2, 4.6, f"Accuracy against cost\n{evaluation.n_test} held-out tasks")
    singles = {one.worker: (1000 * one.cost_usd, 100 * one.accuracy) for one in evaluation.frontier.singles}
    axes.plot(*_hull(singles), color=FAINT, linewidth=1.2, linestyle="--", label="workers, mixed by chance")
    labels = _marked(axes, singles, INK, "s")
    shown = [
        one for one in evaluation.policies if one.cost_usd is not None and one.name not in (REFERENCE, "hindsight")
    ]
    points = {one.name: (1000 * one.cost_usd, 100 * one.accuracy) for one in shown if one.cost_usd is not None}
    for kind, color in (("baseline", ACCENT), ("bound", FAINT)):
        labels |= _marked(axes, {one.name: points[one.name] for one in shown if one.kind == kind}, color, "D")
    trainers = dict.fromkeys(trainer_of(one.name) for one in shown if one.kind == "head")
    for trainer, color in zip(trainers, SERIES, strict=False):
        family = {name: point for name, point in points.items() if trainer_of(name) == trainer}
        axes.plot(*_hull(family), color=color, linewidth=1.8, label=trainer)
        labels |= _marked(axes, family, color, "o")
    axes.set_xlabel("USD per 1000 tasks")
    axes.yaxis.set_major_formatter("{x:.0f}%")
    axes.grid()
    axes.margins(0.08)
    legend_below(drawing, axes, columns=3)
    beside_points(axes, labels)
    return drawing


def _hull(points: Mapping[str, tuple[float, float]]) -> tuple[np.ndarray, np.ndarray]:
    return non_decreasing_hull(*np.array(list(points.values())).T)


def _marked(
    axes: Axes, points: Mapping[str, tuple[float, float]], color: str, marker: str
) -> dict[str, tuple[float, float, str]]:
    """Draw the points; returns where they want their names."""
    if not points:
        return {}
    across, up = np.array(list(points.values())).T
    axes.scatter(across, up, color=color, marker=marker, s=26, zorder=3)
    return {name: (*point, color) for name, point in points.items()}


def _outcome(result: PolicyResult) -> str:
    word = "bound" if result.kind == "bound" else result.verdict
    return f"{result.accuracy:.1%}  {points(result.difference)}  {word}"


def _solve_rates(table: pd.DataFrame, workers: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """Column names and rates (L, columns): all tasks, then each benchmark's categories by falling size."""
    scores = score_matrix(table, workers)
    groups: dict[tuple[str, str], list[int]] = {}
    for row, group in enumerate(zip(table["benchmark"], table["category"], strict=True)):
        groups.setdefault(group, []).append(row)
    largest = sorted(groups, key=lambda group: -len(groups[group]))[:MAX_COLUMNS]
    kept = sorted(largest, key=list(groups).index)
    names = ["all"]
    rates = [mean_known(scores, np.nan)]
    for group in kept:
        rows = groups[group]
        ambiguous = sum(other == group[1] for _, other in groups) > 1
        name = group[1] if group[1] and not ambiguous else " ".join(filter(None, group))
        names.append(f"{name} ({len(rows)})")
        rates.append(mean_known(scores[rows], np.nan))
    return names, np.stack(rates, axis=1)


def _blues() -> Colormap:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("solve_rate", ["#f4f7fa", "#a9cbe0", SERIES[0], "#12395a"])


def _percent(axis: Axis) -> None:
    from matplotlib.ticker import PercentFormatter

    axis.set_major_formatter(PercentFormatter(xmax=1, decimals=0))
