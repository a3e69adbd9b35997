"""An evaluation as tables a person reads: Markdown for the asset's page, plain text for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from trinity_assets.routing.results import REFERENCE, Difference, Evaluation, PolicyResult

_HEADINGS = [
    "policy", "accuracy", "vs best single", "95% interval", "verdict", "won/lost", "gap closed", "USD per 1000",
]  # fmt: skip
_COMPARED = ["vs", "difference", "95% interval", "verdict", "won/lost", "p"]
_BOUND_VERDICT = "bound"


def markdown_report(evaluation: Evaluation) -> str:
    """All that was compared, and how much these tasks can tell, as Markdown."""
    parts = [
        _summary(evaluation),
        _markdown_table(_HEADINGS, _policy_rows(evaluation)),
        _markdown_table(*_benchmark_rows(evaluation)),
        _markdown_table(*_share_rows(evaluation)),
        _comparison_table(evaluation),
        _seed_table(evaluation),
        _left_out_table(evaluation),
        "\n".join(f"- {note}" for note in _notes(evaluation)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def text_report(evaluation: Evaluation) -> str:
    """The comparison and its notes in aligned columns."""
    rows = [_HEADINGS, *_policy_rows(evaluation)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join([_summary(evaluation), "", *lines, "", *_notes(evaluation)]) + "\n"


def _summary(evaluation: Evaluation) -> str:
    missing = f", {evaluation.n_missing} more left out for a missing score" if evaluation.n_missing else ""
    again = (evaluation.looks or 1) > 1
    looks = f" Heads trained and judged on these tasks so far: {evaluation.looks} times." if again else ""
    return (
        f"{evaluation.n_test} held-out tasks{missing}; trained on {evaluation.n_train}. "
        f"Best single worker on train: {evaluation.reference_worker}.{looks}"
    )


def _policy_rows(evaluation: Evaluation) -> list[list[str]]:
    return [
        [
            result.name,
            f"{result.accuracy:.1%}",
            points(result.difference),
            f"{points(result.low)} to {points(result.high)}",
            _BOUND_VERDICT if result.kind == "bound" else _verdict(evaluation, result),
            f"{result.wins}/{result.losses}",
            "-" if result.gap_closed is None else f"{result.gap_closed.share:.0%}",
            "unknown" if result.cost_usd is None else f"{1000 * result.cost_usd:.3f}",
        ]
        for result in evaluation.policies
    ]


def _verdict(evaluation: Evaluation, result: PolicyResult) -> str:
    return "reference" if result is evaluation.policy("best_single") else result.verdict


def _compared(one: Difference) -> list[str]:
    return [
        points(one.difference),
        f"{points(one.low)} to {points(one.high)}",
        one.verdict,
        f"{one.wins}/{one.losses}",
        f"{one.p:.2g}",
    ]


def _comparison_table(evaluation: Evaluation) -> str:
    rows = [[one.head, one.other, *_compared(one)] for one in evaluation.comparisons]
    return _markdown_table(["head", *_COMPARED], rows) if rows else ""


def _seed_table(evaluation: Evaluation) -> str:
    rows = [
        [one.trainer, str(one.seeds), f"{one.lowest:.1%} to {one.highest:.1%}", REFERENCE, *_compared(one)]
        for one in evaluation.seeds
    ]
    return _markdown_table(["trainer", "seeds", "accuracy", *_COMPARED], rows) if rows else ""


def _left_out_table(evaluation: Evaluation) -> str:
    rows = [
        [one.trainer, one.benchmark, str(one.n_test), f"{one.accuracy:.1%}", one.reference_worker, *_compared(one)]
        for one in evaluation.left_out
    ]
    return _markdown_table(["trainer", "not trained on", "test tasks", "accuracy", *_COMPARED], rows) if rows else ""


def _benchmark_rows(evaluation: Evaluation) -> tuple[list[str], list[list[str]]]:
    names = [result.name for result in evaluation.policies]
    rows = [
        [row.benchmark, str(row.n_test), *(f"{row.accuracy[name]:.1%}" for name in names)]
        for row in evaluation.benchmarks
    ]
    return ["benchmark", "test tasks", *names], rows


def _share_rows(evaluation: Evaluation) -> tuple[list[str], list[list[str]]]:
    rows = [
        [result.name, *(f"{result.shares[worker]:.0%}" for worker in evaluation.workers)]
        for result in evaluation.policies
    ]
    return ["asks", *evaluation.workers], rows


def _notes(evaluation: Evaluation) -> list[str]:
    gates = [
        f"The gate {'lets the head of' if gate.passed else 'publishes the best single worker instead of'} "
        f"{gate.trainer}{' pass' if gate.passed else ''}: {gate.reason}, on {gate.n} train tasks."
        for gate in evaluation.gates
    ]
    absent = [f"trained without {worker.name}: {worker.reason}." for worker in evaluation.dropped]
    power = [
        f"{result.name}: {result.verdict}; these {evaluation.n_test} tasks would show a difference of "
        f"{result.detectable * 100:.1f} points with 80% power."
        if result.detectable is not None
        else f"{result.name}: {result.verdict}; it solves the same tasks as the best single worker."
        for result in evaluation.heads
    ]
    seeds = [
        f"{one.trainer}: with {one.seeds} training seeds {points(one.difference)} points over the best single worker, "
        f"interval over tasks and seeds {points(one.low)} to {points(one.high)}: {one.verdict}."
        for one in evaluation.seeds
    ]
    unseen = [
        f"{one.trainer} on {one.benchmark} without having seen it: {points(one.difference)} points over "
        f"{one.reference_worker}, {points(one.low)} to {points(one.high)}: {one.verdict}."
        for one in evaluation.left_out
    ]
    incumbent = evaluation.incumbent
    challenged = (
        []
        if incumbent is None
        else [
            f"{one.head} against {incumbent.checkpoint}, which is published and has {incumbent.accuracy:.1%}: "
            f"{points(one.difference)} points, {points(one.low)} to {points(one.high)}: {one.verdict}."
            for one in incumbent.challengers
        ]
    )
    return absent + power + seeds + unseen + challenged + gates


def points(difference: float) -> str:
    """A difference of accuracies in signed percentage points."""
    return f"{difference * 100:+.1f}"


def _markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
