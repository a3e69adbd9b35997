"""Importing many recorded rows: `python -m bench.bench_recorded`.

Each import runs in a new process, from the files to the bytes of the table, in rounds of which the best counts. The
peak is the process's resident memory, imports, files and tasks included. The rows are synthetic, 100,000 of them, and
as many tasks: a wide table of eight workers' scores by id, and a log of completions of 1,000 characters by question.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROWS = 100_000
ROUNDS = 2
WORKERS = 8
WORDS = 20_000

CASES: dict[str, dict[str, Any]] = {
    "scores, wide .csv, by id": {"path": "wide.csv", "task": {"id": "id"}, "score": "w3"},
    "scores, wide .parquet, by id": {"path": "wide.parquet", "task": {"id": "id"}, "score": "w3"},
    "completions, long .jsonl, by question": {"path": "long.jsonl", "task": {"question": "q"}, "completion": "said"},
    "completions, long .parquet, by question": {
        "path": "long.parquet",
        "task": {"question": "q"},
        "completion": "said",
    },
}


def write_files(directory: Path) -> None:
    """The tasks, and both tables in both formats."""
    import pandas as pd

    draw = random.Random(0)  # noqa: S311 - made-up data, no secret
    words = [f"w{number:x}" for number in range(WORDS)]
    questions = [" ".join([f"What is {number}:", *draw.choices(words, k=40)]) for number in range(ROWS)]
    tasks = pd.DataFrame({"task_id": [f"t{n}" for n in range(ROWS)], "question": questions, "source_row": range(ROWS)})
    tasks.to_parquet(directory / "tasks.parquet", index=False)
    scores = {f"w{worker}": [draw.choice((0, 1)) for _ in range(ROWS)] for worker in range(WORKERS)}
    wide = pd.DataFrame({"id": tasks["task_id"], **scores})
    wide.to_csv(directory / "wide.csv", index=False)
    wide.to_parquet(directory / "wide.parquet", index=False)
    said = [" ".join(draw.choices(words, k=200)) for _ in range(ROWS)]
    long = pd.DataFrame({"q": questions, "model": "m", "said": said, "usd": 0.001, "tokens": 250})
    long.to_json(directory / "long.jsonl", orient="records", lines=True)
    long.to_parquet(directory / "long.parquet", index=False)


def measure(directory: Path, case: str) -> None:
    """Import one case and print seconds, peak MiB and rows, as JSON."""
    import pandas as pd

    from trinity_assets.benchmarks.specs import FieldMapping
    from trinity_assets.recorded.files import file_versions
    from trinity_assets.recorded.formats import resolved
    from trinity_assets.recorded.outcomes import OUTCOMES_SCHEMA, import_outcomes, outcomes_data_version
    from trinity_assets.recorded.specs import RecordedCell, RecordedOutcomes
    from trinity_assets.store.artifacts import ArtifactStore
    from trinity_assets.store.tables import write_table

    tasks = pd.read_parquet(directory / "tasks.parquet")
    outcomes = resolved(RecordedOutcomes.model_validate(CASES[case]), "m", FieldMapping())
    started = time.perf_counter()
    cell = RecordedCell(outcomes=outcomes, files=file_versions(outcomes, directory))
    recorded = import_outcomes(cell, tasks, directory, label=case)
    outcomes_data_version(recorded.frame)
    store = ArtifactStore(str(directory / "store"))
    write_table(store, "answers", recorded.frame, OUTCOMES_SCHEMA, cell.identity())
    seconds = time.perf_counter() - started
    unit = 1024 if sys.platform == "linux" else 1024**2  # Linux counts in KiB, macOS in bytes
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    print(json.dumps([seconds, peak, len(recorded.frame)]))


def measured(directory: Path, case: str) -> tuple[float, ...]:
    """What :func:`measure` prints in a new process."""
    command = [sys.executable, "-m", "bench.bench_recorded", str(directory), case]
    child = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - our own code
    return tuple(json.loads(child.stdout))


def main() -> None:
    """Print seconds and peak memory of each case."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        # Apart, so that what writing took is no part of any peak.
        subprocess.run([sys.executable, "-m", "bench.bench_recorded", name], check=True)  # noqa: S603 - our own code
        for case in CASES:
            seconds, peak, rows = min(measured(directory, case) for _ in range(ROUNDS))
            print(f"{rows:.0f} {case:42} {seconds:6.2f} s {peak:7.0f} MiB")


if __name__ == "__main__":
    match sys.argv[1:]:
        case [directory]:
            write_files(Path(directory))
        case [directory, name]:
            measure(Path(directory), name)
        case _:
            main()
