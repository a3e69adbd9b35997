"""A live check in words: a table and a verdict per worker for the terminal, and the same in Markdown to keep."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from trinity_assets.errors import LiveCheckError
from trinity_assets.files import replaced_whole
from trinity_assets.live_check.findings import CheckedTask, CheckedWorker, LiveCheck
from trinity_assets.spec import canonical_json
from trinity_assets.texts import counted, printable
from trinity_assets.workers.redaction import redact, without_secrets

HEADINGS = ("task", "status", "score", "rule", "s", "in", "out", "USD")
NUMBERS = ("score", "s", "in", "out", "USD")
FOLDING = ("status", "rule")

_REASON_CHARACTERS = 200


def task_row(task: CheckedTask) -> list[str]:
    """The cells of one task, under ``HEADINGS``."""
    answer, grade, problem = task.reply.answer, task.grade, task.reply.problem
    if answer is None:
        return [_name(task), problem.error_class if problem else "-", *["-"] * (len(HEADINGS) - 2)]
    return [
        _name(task),
        answer["status"],
        "-" if grade is None or grade.score is None else f"{grade.score:g}",
        (grade.rule if grade else "") or "-",
        _number(answer["latency_s"], ".1f"),
        _number(answer["input_tokens"], ",d"),
        _number(answer["output_tokens"], ",d"),
        _number(answer["cost_usd"], ".6f", "unknown"),
    ]


def verdict_lines(checked: CheckedWorker) -> Iterator[str]:
    """The verdict, then who answered, what went out, how that differs from the catalog, and what is not right."""
    yield f"{checked.worker.name}: {checked.verdict}"
    yield from (f"  {line}" for line in dict.fromkeys(line for task in checked.tasks for line in _returned(task)))
    shown: set[str] = set()
    for task in checked.tasks:
        parameters = _parameters(task.reply.sent.parameters) if task.reply.sent else None
        if parameters is not None and parameters not in shown:  # what one task was sent, most others were sent, too
            shown.add(parameters)
            yield from (f"  {line}" for line in _sent(checked, task))
    for task in checked.tasks:
        if task.grade is not None and task.grade.reason and task.grade.score != 1:
            reason = printable(task.grade.reason, _REASON_CHARACTERS)
            yield f"  {_name(task)}: {reason}"


def write_report(check: LiveCheck, path: Path, secrets: Sequence[str]) -> None:
    """Keep the report as Markdown at ``path``, without ``secrets``.

    Raises:
        LiveCheckError: it cannot be written there.
    """
    text = without_secrets("\n".join(_markdown(check)) + "\n", secrets)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replaced_whole(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
    except OSError as error:
        raise LiveCheckError(
            f"cannot write the report to {path}: {error.strerror}. Every answer is in the ledger; give another --out"
        ) from error


def _markdown(check: LiveCheck) -> Iterator[str]:
    yield f"# Live check of {check.at:%Y-%m-%d %H:%M:%S} UTC"
    yield ""
    yield f"Catalog `{check.catalog}`, run `{check.run}` of the ledger. It cost {check.spent}."
    yield ""
    yield from _table(["worker", "provider", "model", "verdict"], [_overview(one) for one in check.workers])
    for checked in check.workers:
        yield f"\n## {checked.worker.name}\n"
        yield f"{checked.verdict}\n"
        if checked.tasks:
            yield from _table(HEADINGS, [task_row(task) for task in checked.tasks])
        for task in checked.tasks:
            yield f"\n### {_cell(_name(task))}\n"
            yield from (f"- {_cell(line)}" for line in _details(checked, task))


def _name(task: CheckedTask) -> str:
    return f"{task.reply.task.benchmark}: {printable(task.reply.task.task_id)}"


def _overview(checked: CheckedWorker) -> list[str]:
    return [checked.worker.name, checked.worker.provider.name, checked.worker.model, checked.verdict]


def _details(checked: CheckedWorker, task: CheckedTask) -> Iterator[str]:
    if problem := task.reply.problem:
        yield f"{problem.error_class}: {problem.said}"
        if problem.advice:
            yield f"what to do: {problem.advice}"
    yield from _returned(task)
    yield from _sent(checked, task)
    if task.grade is not None and (task.grade.fault or task.grade.reason):
        yield f"grade: {task.grade.fault or task.grade.reason}"


def _returned(task: CheckedTask) -> Iterator[str]:
    if answer := task.reply.answer:
        fingerprint = f", fingerprint {printable(answer['fingerprint'])}" if answer["fingerprint"] else ""
        yield f"answered by: {printable(answer['model_returned'] or 'a model that it does not name')}{fingerprint}"


def _sent(checked: CheckedWorker, task: CheckedTask) -> Iterator[str]:
    sent = task.reply.sent
    if sent is None:
        return
    conversation = f"{counted(sent.messages, 'message')} of {counted(sent.characters, 'character')}"
    yield f"sent: {_parameters(sent.parameters)} ({conversation})"
    if missing := sent.missing(checked.wanted):
        yield f"not sent as in the catalog: {_parameters(missing)}"
    if added := sent.added(checked.wanted):
        yield f"added on the way: {_parameters(added)}"


def _parameters(parameters: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {redact(_value(value))}" for name, value in parameters.items())


def _value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else canonical_json(value)


def _number(value: Any, form: str, unknown: str = "-") -> str:
    if value is None:
        return unknown
    return format(int(value) if form.endswith("d") else float(value), form)


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(headings)} |"
    yield f"|{'---|' * len(headings)}"
    yield from (f"| {' | '.join(map(_cell, row))} |" for row in rows)


def _cell(text: str) -> str:
    """``text`` in one line that Markdown shows as it is, as far as a table goes."""
    return printable(text, 1000).replace("|", r"\|").replace("<", "&lt;")
