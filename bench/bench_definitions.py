"""Loading definitions against importing Dagster alone: `python -m bench.bench_definitions`.

Each is a new process, in alternating rounds; the ratio compares best rounds. The budget for loading is 2 s.
"""

from __future__ import annotations

import subprocess
import sys

ROUNDS = 5
TIMED = "import time; start = time.perf_counter(); {}; print(time.perf_counter() - start)"
SUBJECTS = {
    "import dagster": TIMED.format("import dagster"),
    "import trinity_assets.definitions and defs()": TIMED.format("import trinity_assets.definitions as d; d.defs()"),
}


def seconds(program: str) -> float:
    """What a new interpreter that runs ``program`` prints."""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603 - our own code
    return float(result.stdout)


def main() -> None:
    """Print both times and their ratio."""
    best = dict.fromkeys(SUBJECTS, float("inf"))
    for _ in range(ROUNDS):
        for name, program in SUBJECTS.items():
            best[name] = min(best[name], seconds(program))
    for name, value in best.items():
        print(f"{name:48} {value:5.2f} s")
    alone, whole = best.values()
    print(f"{'ratio':48} {whole / alone:5.2f}")


if __name__ == "__main__":
    main()
