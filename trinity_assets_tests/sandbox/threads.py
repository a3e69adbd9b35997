"""Runs one program with a limit of several processes in bubblewrap: ``python -m trinity_assets_tests.sandbox.threads``.

It prints how many threads the program could start beside its first, as whoever starts it.
"""

from __future__ import annotations

from trinity_assets.sandbox.candidate import Candidate
from trinity_assets.sandbox.specs import ProgramLimits
from trinity_assets.sandbox.tiers import BUBBLEWRAP

LIMITS = ProgramLimits(cpu_s=5, wall_s=60, memory_mib=1024, processes=8)

STARTS_THREADS = """
import threading

def f(wanted):
    stop, started = threading.Event(), []
    try:
        for _ in range(wanted):
            thread = threading.Thread(target=stop.wait)
            thread.start()
            started.append(thread)
    except RuntimeError:
        pass
    stop.set()
    for thread in started:
        thread.join()
    return len(started)
"""

if __name__ == "__main__":
    with Candidate(BUBBLEWRAP, LIMITS) as candidate:
        candidate.load(STARTS_THREADS, "f")
        print(candidate(40))
