"""The headroom of a router, and of one more worker, as a person reads it: Markdown, in lines."""

from __future__ import annotations

import re

from trinity_assets.routing.admission import Admission
from trinity_assets.routing.headroom import Headroom
from trinity_assets.routing.power import tasks_needed
from trinity_assets.routing.report import points
from trinity_assets.routing.statistics import CONFIDENCE, Gain
from trinity_assets.texts import counted, in_markdown

_VERDICT = re.compile(r"\\\*\\\*((?:nothing|something|perhaps something) to route|yes|no|unclear)\\\*\\\*", re.I)
"""A verdict that :func:`headroom_lines` set bold, after everything was escaped."""

PAIRS_SHOWN = 3
"""Pairs of workers named at either end, the most alike and the least."""

NAMED_GAIN = 0.05
"""The gain of which a report says how many tasks it takes."""


def headroom_markdown(found: Headroom) -> str:
    """What was found, as a list; the verdict first."""
    return "".join(f"- {emphasized(line)}\n" for line in headroom_lines(found))


def emphasized(line: str) -> str:
    """A line of a report on the headroom as Markdown: its verdict stays bold, and names are shown as they are."""
    return _VERDICT.sub(r"**\1**", in_markdown(line))


def headroom_verdict(found: Headroom) -> tuple[str, str]:
    """Whether there is something to route, and why that is said."""
    if found.nothing_to_route:
        return "nothing to route", found.nothing_to_route
    if found.shown:
        return "something to route", "choosing between the workers gains more than chance"
    return "perhaps something to route", "what the best score of each task promises may be noise"


def headroom_lines(found: Headroom) -> list[str]:
    """What was found, a sentence or two a line; the verdict first."""
    verdict, reason = headroom_verdict(found)
    left_out = found.n_train - found.n_complete
    lines = [
        f"**{verdict[0].upper()}{verdict[1:]}**: {reason}.",
        f"Looked at {counted(found.n_train, 'train task')}"
        + (f", without {left_out} that lack a worker's score" if left_out else "")
        + ": "
        + ", ".join(f"{worker} {_percent(score)}" for worker, score in found.scores.items())
        + ".",
    ]
    if found.best_single is None:
        return lines
    return [*lines, *_gains(found), *_benchmarks(found), *_pairs(found), *_missing(found), *_power(found)]


def admission_lines(found: Admission, worker: str) -> list[str]:
    """Whether ``worker`` is worth admitting, and by what, a sentence or two a line."""
    answers = {
        "yes": f"{worker} is worth admitting: it adds more than chance.",
        "no": f"{worker} is not worth admitting: even a perfect router would gain next to nothing by it.",
        "unclear": f"These tasks do not tell whether {worker} is worth admitting.",
    }
    left_out = f", without {found.n_missing} that lack a score" if found.n_missing else ""
    lines = [
        f"{answers[found.answer]} By {counted(found.n_tasks, 'task')}{left_out}, it adds:",
        f"{_gain(found.single)} to the best single worker",
        f"{_gain(found.lookup)} to the best worker per benchmark",
    ]
    if found.cross_fitted:
        lines.append(f"{_gain(found.cross_fitted)} to a perfect router, cross-fitted")
    return [*lines, f"{_gain(found.oracle)} to a perfect router, inflated by noise"]


def _gains(found: Headroom) -> list[str]:
    lines = [f"The best single worker is {found.best_single}, {_percent(found.best_single_score)}."]
    if found.lookup:
        lines.append(f"The best worker per benchmark gains {_gain(found.lookup)} over it, cross-fitted over tasks.")
    if found.category_lookup:
        lines.append(f"The best worker per category gains {_gain(found.category_lookup)}, cross-fitted over tasks.")
    if found.cross_fitted:
        about = f"half of the samples of {counted(found.n_cross_fitted, 'task')} and scored on the other half"
        lines.append(f"A perfect router gains at least {_gain(found.cross_fitted)}, chosen by {about}.")
    if found.oracle:
        kept = "" if found.cross_fitted else ", which one sample per task cannot take out"
        lines.append(f"A perfect router gains at most {_gain(found.oracle)}, inflated by noise{kept}.")
    return [*lines, f"On {_percent(found.no_signal)} of the tasks no choice matters: all workers score the same."]


def _benchmarks(found: Headroom) -> list[str]:
    lines = []
    for one in found.benchmarks:
        line = f"{one.benchmark}, {counted(one.n_train, 'task')}: best is {one.best}, {_percent(one.score)}"
        if one.best != found.best_single:
            line += f" ({found.best_single} {_percent(one.best_single_score)})"
        if one.saturated:
            line += f"; saturated: {', '.join(one.saturated)} solved everything, so no router can gain there"
        lines.append(line + ".")
    return lines


def _pairs(found: Headroom) -> list[str]:
    alike = sorted(found.pairs, key=lambda pair: -pair.alike)
    shown = alike if len(alike) <= 2 * PAIRS_SHOWN else [*alike[:PAIRS_SHOWN], *alike[-PAIRS_SHOWN:]]
    if not shown:
        return []
    named = (
        f"{pair.first} and {pair.second} {_percent(pair.alike)} "
        f"({_percent(pair.first_better)} and {_percent(pair.second_better)} better)"
        for pair in shown
    )
    which = "" if shown is alike else ", the most and the least alike of all pairs"
    return [f"Scored alike{which}: {'; '.join(named)}."]


def _missing(found: Headroom) -> list[str]:
    return [
        f"{one.worker} lacks {counted(one.tasks, 'task')}; the others score {_percent(one.others_there)} there and "
        f"{_percent(one.others_elsewhere)} elsewhere (p = {one.p:.2g}): "
        + (
            "the missing tasks are the hard ones, and its score flatters it."
            if one.harder
            else "no sign of harder tasks."
        )
        for one in found.missing
    ]


def _power(found: Headroom) -> list[str]:
    if not found.detectable or not found.spread:
        return []
    return [
        f"With {counted(found.n_test, 'test task')} you can see {100 * found.detectable:.0f} points with 80% power, of "
        f"a router that differs from {found.best_single} as often as the second best worker does; "
        f"{100 * NAMED_GAIN:.0f} points take {tasks_needed(found.spread, NAMED_GAIN)}."
    ]


def _gain(gain: Gain) -> str:
    """With its p where that alone keeps it from being told from none."""
    few = f", p {gain.p:.2f}" if gain.low > 0 and gain.p > 1 - CONFIDENCE else ""
    return f"{points(gain.value)} points ({points(gain.low)} to {points(gain.high)}{few})"


def _percent(share: float | None) -> str:
    return "unknown" if share is None else f"{share:.1%}"
