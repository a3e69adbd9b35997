"""The promise that money hangs on: a process killed at any moment loses at most the calls in flight."""

from __future__ import annotations

import signal
import time

from trinity_assets.workers.collection import collect
from trinity_assets.workers.ledger import Ledger
from trinity_assets_tests.scripted_server import ScriptedServer
from trinity_assets_tests.workers.collectors import Collector
from trinity_assets_tests.workers.conftest import MakeWorker, prompts
from trinity_assets_tests.workers.test_ledger import rows

ON_BOTH_DATABASES = True

TASKS = 60
CONCURRENCY = 4


def killed_after(requests: int, server: ScriptedServer, collector: Collector) -> None:
    collector.go()
    goal, deadline = server.count() + requests, time.monotonic() + 90
    while server.count() < goal and collector.living() and time.monotonic() < deadline:
        time.sleep(0.002)
    collector.kill()
    assert collector.status() == -signal.SIGKILL


def test_killed_twice_asks_nothing_settled_again(
    server: ScriptedServer, make_worker: MakeWorker, ledger_url: str
) -> None:
    server.delay_s = 0.05
    worker = make_worker(concurrency=CONCURRENCY)
    for requests in (15, 17):
        killed_after(requests, server, Collector(ledger_url, worker, TASKS))
    server.delay_s = 0.0
    with Ledger(ledger_url) as ledger:
        asked = server.count()
        collection = collect(worker, "bench", prompts(TASKS), ledger)
    assert collection.complete and len(collection.frame) == TASKS
    assert asked - collection.reused <= 2 * CONCURRENCY, "more was lost than the calls in flight at the two kills"
    assert server.count() == asked + TASKS - collection.reused
    # A row per request that arrived, and for those in flight at the kills one that says so.
    calls = rows(ledger_url, "select error_class from calls")
    assert server.count() <= len(calls) <= server.count() + 2 * CONCURRENCY
    assert calls.count(("killed",)) == len(calls) - TASKS and 0 < calls.count(("killed",)) <= 2 * CONCURRENCY
    assert list(collection.frame["text"]) == [f"QUESTION {index}" for index in range(TASKS)]
