"""Snapshotting many tasks: `python -m bench.bench_snapshots`.

Each size is snapshotted in a new process, from a JSON Lines file to the bytes of both tables, in alternating rounds, of
which the best counts. The ratio of the seconds per task at the larger size to those at the smaller is 1 when the work
is linear. The peak is the process's resident memory, imports and source included. The questions are synthetic: 40 to
80 words drawn as often as words of English are, a third with one of ten long introductions in common, every fiftieth a
near duplicate of an earlier one.
"""

from __future__ import annotations

import itertools
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SIZES = (10_000, 100_000)
ROUNDS = 2
WORDS = 20_000
NEAR_DUPLICATE_EVERY = 50


def write_source(path: Path, count: int) -> None:
    """``count`` tasks as JSON Lines."""
    draw = random.Random(0)  # noqa: S311 - test data, no secret
    words = [f"w{number:x}" for number in range(WORDS)]
    # Zipf's law: the n-th word is drawn 1/n as often as the first.
    weights = list(itertools.accumulate(1 / rank for rank in range(1, WORDS + 1)))
    introductions = [draw.choices(words, cum_weights=weights, k=30) for _ in range(10)]
    earlier: list[list[str]] = []
    with path.open("w", encoding="utf-8") as stream:
        for number in range(count):
            if number % NEAR_DUPLICATE_EVERY == NEAR_DUPLICATE_EVERY - 1:
                text = [*draw.choice(earlier), f"again{number}"]
            else:
                text = draw.choices(words, cum_weights=weights, k=draw.randint(40, 80))
                text = [*draw.choice(introductions), *text] if number % 3 == 0 else text
                earlier.append(text)
            row = {"id": number, "question": " ".join(text), "answer": str(number), "category": number % 7}
            stream.write(json.dumps(row) + "\n")


def measure(path: Path) -> None:
    """Snapshot ``path`` and print seconds, peak MiB, tasks and groups, as JSON."""
    from trinity_assets.benchmarks.snapshots import GOLD_SCHEMA, TASKS_SCHEMA, take_snapshot
    from trinity_assets.benchmarks.specs import FieldMapping, FileSource, SnapshotSpec
    from trinity_assets.store.artifacts import ArtifactStore
    from trinity_assets.store.tables import write_table

    source = FileSource(kind="file", path=path.name)
    spec = SnapshotSpec(name="synthetic", source=source, fields=FieldMapping(category="category"))
    started = time.perf_counter()
    taken = take_snapshot(spec, path.parent)
    store = ArtifactStore(str(path.parent / "store"))
    write_table(store, "tasks", taken.tasks, TASKS_SCHEMA, spec.asked_identity(""))
    write_table(store, "gold", taken.gold, GOLD_SCHEMA, spec.gold_identity(""))
    seconds = time.perf_counter() - started
    unit = 1024 if sys.platform == "linux" else 1024**2  # Linux counts in KiB, macOS in bytes
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    print(json.dumps([seconds, peak, len(taken.tasks), taken.tasks["group"].nunique()]))


def measured(path: Path) -> tuple[float, ...]:
    """What :func:`measure` prints in a new process."""
    command = [sys.executable, "-m", "bench.bench_snapshots", str(path)]
    child = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - our own code
    return tuple(json.loads(child.stdout))


def main() -> None:
    """Print seconds and peak memory of each size, and the ratio."""
    with tempfile.TemporaryDirectory() as directory:
        paths = [Path(directory) / f"{count}.jsonl" for count in SIZES]
        for path, count in zip(paths, SIZES, strict=True):
            write_source(path, count)
        rounds = [[measured(path) for path in paths] for _ in range(ROUNDS)]
    best = [min(runs) for runs in zip(*rounds, strict=True)]
    for seconds, peak, tasks, groups in best:
        name = f"{tasks:.0f} tasks, {tasks - groups:.0f} near duplicates"
        print(f"{name:48} {seconds:6.2f} s {peak:7.0f} MiB")
    small, large = (seconds / tasks for seconds, _, tasks, _ in best)
    print(f"{'ratio of seconds per task, large to small':48} {large / small:6.2f}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measure(Path(sys.argv[1]))
    else:
        main()
