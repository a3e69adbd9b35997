"""Comparisons as a person reads them: a table, the tasks whose verdicts changed, and what is worth a warning."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd

from trinity_assets.grading.drift import Comparison, NoiseFloor
from trinity_assets.texts import counted, printable

TASKS_NAMED = 40
"""Tasks of one kind that a page or a warning names of one comparison; the artifact names all."""

REPORT_CHARACTERS = 30_000
"""How long a list on a page or in a warning may get: the event log is read by everything that looks at an asset."""


def drift_table(comparisons: Iterable[Comparison]) -> pd.DataFrame:
    """One row per comparison, every cell a text."""
    return pd.DataFrame([_row(one) for one in comparisons])


def changed_tasks(comparisons: Iterable[Comparison]) -> str:
    """Markdown that names the tasks whose verdicts changed; empty where none did."""
    lines: list[str] = []
    for one in comparisons:
        for which, tasks in (("newly solved", one.newly_solved), ("newly lost", one.newly_lost)):
            if tasks:
                lines.append(f"- {one.label}, {which}: {_named(tasks)}")
    return "\n".join(_within(lines, "- "))


def warnings(comparisons: Iterable[Comparison]) -> list[str]:
    """What is worth a warning, a line each: significant drift with its tasks, and models that changed."""
    found = []
    for one in comparisons:
        if one.significant:
            said = [f"{one.changed} of {one.pairs} verdicts changed ({_tests(one)})"]
            said += [f"newly solved: {_named(one.newly_solved)}"] if one.newly_solved else []
            said += [f"newly lost: {_named(one.newly_lost)}"] if one.newly_lost else []
            found.append(f"{one.label}: {'; '.join(said)}")
        if one.model_changed:
            found.append(f"{one.label}: the provider says that it ran {_change(one.models_earlier, one.models_now)}")
    return _within(found)


def _within(lines: Sequence[str], mark: str = "") -> list[str]:
    """As many of ``lines`` as ``REPORT_CHARACTERS`` hold, and how many more there are."""
    length = 0
    for number, line in enumerate(lines):
        length += len(line) + 1
        if length > REPORT_CHARACTERS:
            return [*lines[:number], f"{mark}and {counted(len(lines) - number, 'line')} more, which the artifact holds"]
    return list(lines)


def _row(one: Comparison) -> dict[str, str]:
    if one.note is not None:
        compared = dict.fromkeys(("verdicts", "newly solved", "newly lost", "McNemar", "floor", "above floor"), "-")
        epochs = one.note
    else:
        epochs = f"{one.earlier_epoch or 'answers'} → {one.epoch}"
        compared = {
            "verdicts": f"{one.pairs}" + (f", {one.left_out} left out" if one.left_out else ""),
            "newly solved": str(len(one.newly_solved)),
            "newly lost": str(len(one.newly_lost)),
            "McNemar": _p(one.mcnemar_p, one.mcnemar_adjusted),
            "floor": _floor(one.floor),
            "above floor": _p(one.floor_p, one.floor_adjusted),
        }
    fingerprint = _change(one.fingerprints_earlier, one.fingerprints_now) if one.fingerprint_changed else "-"
    return {
        "worker": one.worker,
        "benchmark": one.benchmark,
        "epochs": epochs,
        **compared,
        "model": _change(one.models_earlier, one.models_now),
        "fingerprint": fingerprint,
        "USD per answer": _means(one, "cost_usd", ".6f"),
        "output tokens": _means(one, "output_tokens", ".1f"),
    }


def _tests(one: Comparison) -> str:
    tests = [f"McNemar p {_p(one.mcnemar_p, one.mcnemar_adjusted)}"]
    if one.floor is not None:
        tests.append(f"p above the floor of {_floor(one.floor)} {_p(one.floor_p, one.floor_adjusted)}")
    return ", ".join(tests)


def _p(p: float | None, adjusted: float | None) -> str:
    return "-" if p is None or adjusted is None else f"{p:.3g} (adjusted {adjusted:.3g})"


def _floor(floor: NoiseFloor | None) -> str:
    return f"{floor.changed} of {floor.pairs} ({floor.source})" if floor else "none known"


def _change(earlier: Sequence[str], now: Sequence[str]) -> str:
    before, after = (", ".join(printable(name) for name in names) or "-" for names in (earlier, now))
    return after if before == after else f"{before} → {after}"


def _means(one: Comparison, measure: str, form: str) -> str:
    earlier, now = (one.means.get(f"{measure}_{when}") for when in ("earlier", "now"))
    shown = ["-" if mean is None else f"{mean:{form}}" for mean in (earlier, now)]
    return shown[0] if shown[0] == shown[1] else " → ".join(shown)


def _named(tasks: Sequence[str]) -> str:
    named = ", ".join(printable(task) for task in tasks[:TASKS_NAMED])
    return named + (f" and {len(tasks) - TASKS_NAMED} more" if len(tasks) > TASKS_NAMED else "")
