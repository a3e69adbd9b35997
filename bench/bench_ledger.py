"""Answers claimed and settled per second: ``python -m bench.bench_ledger``.

Each writer is a process that claims its questions in batches and commits every answer as the collection does: through
the writer thread, which takes into one commit what has arrived meanwhile, here from 16 askers without a provider's
delay. The target is 1,500 per second with four writers on one SQLite file, none lost. Beside it stands the same with
one writer, as a ratio, and with ``TRINITY_TEST_POSTGRES_URL`` also on that server.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import sqlalchemy as sa

from trinity_assets.workers.claiming import Questions
from trinity_assets.workers.ledger import Call, Entry, Ledger
from trinity_assets.workers.outcomes import Status
from trinity_assets.workers.requests import AnswerRequest
from trinity_assets.workers.writer import LedgerWriter

WRITERS = 4
ANSWERS = 4000
"""Per writer."""
ASKERS = 16
ROUNDS = 3
TARGET = 1500
TEXT = "The answer follows from the three facts given above. " * 20
"""A kilobyte, as a short answer with its reasoning has."""


def call(request: AnswerRequest, run: str) -> Call:
    """What a good call adds to the ledger."""
    return Call(
        request_digest=request.digest,
        attempt=1,
        run=run,
        at=time.time(),
        provider="bench",
        worker="bench_worker",
        benchmark="bench",
        task_id=request.task_id,
        sample=0,
        epoch=1,
        status=Status.ANSWERED,
        finish_reason="stop",
        model_returned="bench",
        input_tokens=300,
        output_tokens=200,
        cost_usd=0.001,
        cost_source="price",
        latency_s=0.5,
        error_class=None,
        error=None,
        price_version="0123456789ab",
    )


async def write(url: str, run: str) -> None:
    """Claim and settle ``ANSWERS`` questions."""
    requests = [
        AnswerRequest(str(index), 0, [], {}, hashlib.sha256(f"{run} {index}".encode()).hexdigest())
        for index in range(ANSWERS)
    ]
    with Ledger(url) as ledger:
        async with Questions("bench", requests, ledger.claims()) as questions, LedgerWriter(ledger) as writer:

            async def ask() -> None:
                while (request := await questions.next(asyncio.sleep)) is not None:
                    await writer.write(Entry(call(request, run), TEXT))

            async with asyncio.TaskGroup() as group:
                for _ in range(ASKERS):
                    group.create_task(ask())


def per_second(url: str, writers: int, label: str) -> float:
    """Answers per second of ``writers`` processes together, from the first's start to the last's end."""
    processes = [
        subprocess.Popen(  # noqa: S603 - ourselves
            [sys.executable, "-m", "bench.bench_ledger", url, f"{label} {number}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(writers)
    ]
    for process in processes:
        assert process.stdout and process.stdout.readline()  # noqa: S101 - it has imported everything
    for process in processes:
        assert process.stdin  # noqa: S101 - it is a pipe
        process.stdin.write("go\n")
        process.stdin.flush()
    spans = [json.loads(process.communicate()[0]) for process in processes]
    return writers * ANSWERS / (max(end for _, end in spans) - min(start for start, _ in spans))


def measure(name: str, url: str) -> None:
    """Print both rates of a fresh ledger and see that nothing was lost."""
    written = 0
    best = dict.fromkeys((1, WRITERS), 0.0)
    for round_ in range(ROUNDS):
        for writers in best:
            best[writers] = max(best[writers], per_second(url, writers, f"{os.getpid()} {round_} {writers}"))
            written += writers * ANSWERS
    with Ledger(url) as ledger, ledger.database.reading() as connection:
        kept = [
            connection.execute(sa.text(f"SELECT count(*) FROM {table} WHERE run LIKE '{os.getpid()} %'")).scalar_one()  # noqa: S608 - our own names
            for table in ("answers", "calls")
        ]
    if kept != [written, written]:
        raise SystemExit(f"{name}: {written} answers were settled, the ledger holds {kept[0]} (and {kept[1]} calls)")
    for writers, rate in best.items():
        print(f"{name:10} {writers} writers {rate:8.0f} answers per second")
    print(f"{name:10} ratio     {best[WRITERS] / best[1]:8.2f}   (target: {TARGET} per second on SQLite, none lost)")


def main() -> None:
    """Measure, or with arguments be one of the writers."""
    if len(sys.argv) == 3:
        print("ready", flush=True)
        sys.stdin.readline()
        started = time.time()
        asyncio.run(write(sys.argv[1], sys.argv[2]))
        print(json.dumps([started, time.time()]))
        return
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as directory:
        measure("SQLite", f"sqlite:///{directory}/ledger.sqlite")
    if url := os.environ.get("TRINITY_TEST_POSTGRES_URL"):
        measure("PostgreSQL", url)


if __name__ == "__main__":
    main()
