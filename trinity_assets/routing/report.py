"""An evaluation as tables a person reads: Markdown for the asset's page, plain text for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from trinity_assets.routing.results import REFERENCE, Difference, Evaluation, PolicyResult
from trinity_assets.texts import in_markdown

_INTERVAL = "95% interval"
_HEADINGS = [
    "policy", "accuracy", "vs best single", _INTERVAL, "verdict", "won/lost", "gap closed", "USD per 1000", "seconds",
]  # fmt: skip
_COMPARED = ["vs", "difference", _INTERVAL, "verdict", "won/lost", "p"]
_BOUND_VERDICT = "bound"
_BEST_OF = "An AIQ keeps the best of its policies on these very tasks, which flatters the set that has more of them."


SUMMARY, COST, ASKED, TRAINING = "Against the best single worker", "Quality against cost", "Whom it asks", "Training"
"""Sections of a report that pictures belong to."""


def report_sections(evaluation: Evaluation) -> dict[str, str]:
    """All that was compared, and how much these tasks can tell, as Markdown by heading. What is empty is left out."""
    sections = {
        SUMMARY: [
            in_markdown(_summary(evaluation)),
            _markdown_table(_HEADINGS, _policy_rows(evaluation)),
            *_items(_power(evaluation)),
        ],
        "Gate": _items(_gates(evaluation)),
        "Per benchmark": [_markdown_table(*_benchmark_rows(evaluation))],
        ASKED: [_markdown_table(*_share_rows(evaluation))],
        COST: [_sweep_table(evaluation), _recovered_table(evaluation)],
        "Head against policy": [_comparison_table(evaluation)],
        "Other training seeds": [_seed_table(evaluation)],
        "Benchmarks it was not trained on": [_left_out_table(evaluation)],
        "Against what is published": _items(_challenged(evaluation)),
        "Trained without": _items(_absent(evaluation)),
    }
    bodies = {heading: "\n\n".join(part for part in parts if part) for heading, parts in sections.items()}
    return {heading: body for heading, body in bodies.items() if body}


def markdown_report(evaluation: Evaluation) -> str:
    """The sections of :func:`report_sections` under their headings, one Markdown text."""
    return "\n\n".join(f"### {heading}\n\n{body}" for heading, body in report_sections(evaluation).items()) + "\n"


def text_report(evaluation: Evaluation) -> str:
    """The comparison and its notes in aligned columns."""
    rows = [_HEADINGS, *_policy_rows(evaluation)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    notes = [
        *_absent(evaluation),
        *_power(evaluation),
        *_seeds(evaluation),
        *_unseen(evaluation),
        *_swept(evaluation),
        *_challenged(evaluation),
        *_gates(evaluation),
    ]
    return "\n".join([_summary(evaluation), "", *lines, "", *notes]) + "\n"


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
            _interval(result),
            _BOUND_VERDICT if result.kind == "bound" else _verdict(evaluation, result),
            f"{result.wins}/{result.losses}",
            "-" if result.gap_closed is None else f"{result.gap_closed.share:.0%}",
            "unknown" if result.cost_usd is None else f"{1000 * result.cost_usd:.3f}",
            "unknown" if result.latency_s is None else f"{result.latency_s:.2f}",
        ]
        for result in evaluation.policies
    ]


def _verdict(evaluation: Evaluation, result: PolicyResult) -> str:
    return "reference" if result is evaluation.policy(REFERENCE) else result.verdict


def _compared(one: Difference) -> list[str]:
    return [
        points(one.difference),
        _interval(one),
        one.verdict,
        f"{one.wins}/{one.losses}",
        f"{one.p:.2g}",
    ]


def _comparison_table(evaluation: Evaluation) -> str:
    rows = [[one.head, one.other, *_compared(one)] for one in evaluation.comparisons]
    return _markdown_table(["head", *_COMPARED], rows) if rows else ""


def _seed_table(evaluation: Evaluation) -> str:
    rows = [
        [one.trainer, str(one.seeds), f"{one.lowest:.1%} to {one.highest:.1%}", one.other, *_compared(one)]
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


def _gates(evaluation: Evaluation) -> list[str]:
    return [
        f"The gate {'lets the head of' if gate.passed else 'publishes the best single worker instead of'} "
        f"{gate.trainer}{' pass' if gate.passed else ''}: {gate.reason}, on {gate.n} train tasks."
        for gate in evaluation.gates
    ]


def _absent(evaluation: Evaluation) -> list[str]:
    return [f"trained without {worker.name}: {worker.reason}." for worker in evaluation.dropped]


def _power(evaluation: Evaluation) -> list[str]:
    return [
        f"{result.name}: {result.verdict}; "
        + (
            "it differs from the best single worker on no task that counts."
            if result.detectable is None
            else f"these {evaluation.n_test} tasks would show {result.detectable * 100:.1f} points with 80% power"
            f"{_closed(result)}."
        )
        for result in evaluation.heads
    ]


def _closed(result: PolicyResult) -> str:
    gap = result.gap_closed
    return f"; it closes {gap.share:.0%} of the gap to the oracle, {gap.low:.0%} to {gap.high:.0%}" if gap else ""


def _seeds(evaluation: Evaluation) -> list[str]:
    return [
        f"{one.trainer}: with {one.seeds} training seeds {points(one.difference)} points over the best single worker, "
        f"interval over tasks and seeds {_interval(one)}: {one.verdict}."
        for one in evaluation.seeds
        if one.other == REFERENCE
    ]


def _unseen(evaluation: Evaluation) -> list[str]:
    return [
        f"{one.trainer} on {one.benchmark} without having seen it: {points(one.difference)} points over "
        f"{one.reference_worker}, {_interval(one)}: {one.verdict}."
        for one in evaluation.left_out
    ]


def _swept(evaluation: Evaluation) -> list[str]:
    if evaluation.frontier is None:
        return []
    return [
        f"{one.trainer} at all cost weights: AIQ {one.aiq:.3f}, that of single workers mixed by chance is "
        f"{evaluation.frontier.singles_aiq:.3f}. {_BEST_OF}"
        for one in evaluation.frontier.sweeps
    ]


def _challenged(evaluation: Evaluation) -> list[str]:
    incumbent = evaluation.incumbent
    if incumbent is None:
        return []
    return [
        f"{one.head} against {incumbent.checkpoint}, which is published and has {incumbent.accuracy:.1%}: "
        f"{points(one.difference)} points, {_interval(one)}: {one.verdict}."
        for one in incumbent.challengers
    ]


def _sweep_table(evaluation: Evaluation) -> str:
    """AIQ of the single workers and of every sweep, as RouterBench defines it."""
    if evaluation.frontier is None:
        return ""
    rows = [["single workers, mixed by chance", f"{evaluation.frontier.singles_aiq:.3f}", "reference"]]
    rows += [
        [f"{one.trainer} at all cost weights", f"{one.aiq:.3f}", f"{one.difference:+.3f}"]
        for one in evaluation.frontier.sweeps
    ]
    table = _markdown_table(["policies", "AIQ", "difference"], rows)
    return f"{table}\n\n{_BEST_OF}" if evaluation.frontier.sweeps else table


def _recovered_table(evaluation: Evaluation) -> str:
    """APGR of every head, as RouteLLM defines it."""
    if not evaluation.recovered:
        return ""
    rows = [
        [one.head, one.strong, one.weak, f"{one.apgr:.3f}", f"{one.low:.3f} to {one.high:.3f}"]
        for one in evaluation.recovered
    ]
    return _markdown_table(["head", "strong", "weak", "APGR (0.5 is chance)", _INTERVAL], rows)


def _items(lines: Sequence[str]) -> list[str]:
    return ["\n".join(f"- {in_markdown(line)}" for line in lines)] if lines else []


def _interval(one: Difference) -> str:
    return f"{points(one.low)} to {points(one.high)}"


def points(difference: float) -> str:
    """A difference of accuracies in signed percentage points."""
    return f"{difference * 100:+.1f}"


def _markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(map(in_markdown, line)) + " |" for line in lines)
