"""Run every benchmark, one after the other, each in a process of its own."""

import subprocess
import sys
from pathlib import Path

for script in sorted(Path(__file__).parent.glob("bench_*.py")):
    print(f"== {script.stem}", flush=True)
    subprocess.run([sys.executable, "-m", f"bench.{script.stem}"], check=True)  # noqa: S603 - our own scripts
