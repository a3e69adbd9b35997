"""Processes that collect a cell of their own and may be killed meanwhile.

They are forked from one that has imported litellm, as Dagster's steps are: importing it takes five seconds of a core.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Mapping
from multiprocessing.connection import Connection

from trinity_assets.workers.claims import Lease
from trinity_assets.workers.collection import collect
from trinity_assets.workers.ledger import Ledger
from trinity_assets.workers.litellm_library import load_litellm
from trinity_assets.workers.specs import WorkerSpec
from trinity_assets_tests.workers.conftest import prompts

_FORKED = multiprocessing.get_context("forkserver")
_STARTING_S = 120.0
ORDINARY = Lease()

Counts = tuple[int, int, int, dict[str, int]]
"""Calls, new and reused answers, failures."""


class Collector:
    """A process that waits for :meth:`go` and then collects ``tasks`` prompts of ``worker`` into the ledger."""

    def __init__(self, ledger_url: str, worker: WorkerSpec, tasks: int, lease: Lease = ORDINARY) -> None:
        self._talk, theirs = _FORKED.Pipe()
        _FORKED.set_forkserver_preload(["trinity_assets_tests.workers.litellm_imported"])
        arguments = (theirs, dict(os.environ), ledger_url, worker, tasks, lease)
        self._process = _FORKED.Process(target=_collect, args=arguments, daemon=True)
        self._process.start()
        theirs.close()
        assert self._talk.poll(_STARTING_S) and self._talk.recv() == "ready"

    @property
    def pid(self) -> int:
        assert self._process.pid
        return self._process.pid

    def go(self) -> None:
        self._talk.send("go")

    def living(self) -> bool:
        return self._process.is_alive()

    def kill(self) -> None:
        self._process.kill()

    def status(self, seconds: float = 120.0) -> int | None:
        """Its exit status once it has ended, minus the number of a signal; None when it has not in that time."""
        self._process.join(seconds)
        return self._process.exitcode

    def collected(self, seconds: float) -> tuple[Counts, list[str]]:
        """What it counted, and its answers' texts in task order."""
        assert self._talk.poll(seconds), "it is not done"
        counts, texts = self._talk.recv()
        return counts, texts


def _collect(
    talk: Connection, environment: Mapping[str, str], ledger_url: str, worker: WorkerSpec, tasks: int, lease: Lease
) -> None:
    os.environ.clear()  # what the process that this one was forked from was started with
    os.environ.update(environment)
    load_litellm()
    talk.send("ready")
    talk.recv()
    with Ledger(ledger_url) as ledger:
        collection = collect(worker, "bench", prompts(tasks), ledger, lease=lease)
    counts = (collection.calls, collection.new, collection.reused, collection.failures)
    talk.send((counts, list(collection.frame["text"])))
