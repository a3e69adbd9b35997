"""Collecting a cell against a provider that takes two seconds for an answer: ``python -m bench.bench_collection``.

Four workers, each in a process of its own, ask 164 tasks with 32 calls under way each, of one provider with one ledger.
Ideal is the latency times the rounds of 32 that 164 tasks make; the target is at most 1.25 of it. The head start of a
cell's first question, by which a bad key costs one call, is half a second of that. Every process has imported litellm
and made a first call before the clock starts.

Beside it stand ``litellm.acompletion`` alone, by the same processes with as many calls under way, and calling one by
one, computed from a few calls. That the server is not what is measured, a client without any library shows first.
"""

from __future__ import annotations

import asyncio
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from trinity_assets.workers.collection import collect
from trinity_assets.workers.ledger import Ledger
from trinity_assets.workers.litellm_library import load_litellm, no_hidden_retries
from trinity_assets.workers.specs import (
    Limits,
    LiteLLMProvider,
    Price,
    PromptStyle,
    Sampling,
    WorkerLimits,
    WorkerSpec,
)
from trinity_assets_tests.scripted_server import ScriptedServer

WORKERS, TASKS, CONCURRENCY = 4, 164, 32
LATENCY_S = 2.0
ROUNDS = 2
ONE_BY_ONE = 3
"""Calls, from which the time of all of them is computed."""
RAW = 2
"""Requests on each connection of the client without any library."""

IDEAL_S = LATENCY_S * math.ceil(TASKS / CONCURRENCY)
TARGET = 1.25

PROMPTS = {f"task_{number}": f"What is {number} plus {number}?" for number in range(TASKS)}


@dataclass(frozen=True)
class Timed:
    """When something began and ended (seconds since 1970), and the CPU seconds that its process spent on it."""

    began: float
    ended: float
    cpu_s: float


def wall_s(parts: Sequence[Timed]) -> float:
    """Seconds from the first beginning to the last end."""
    return max(part.ended for part in parts) - min(part.began for part in parts)


def cpu_ms(parts: Sequence[Timed]) -> float:
    """CPU milliseconds per call."""
    return sum(part.cpu_s for part in parts) / (len(parts) * TASKS) * 1000


# --- what a worker's process does -------------------------------------------------------------------------------------


def ours(url: str, name: str, ledger: str) -> None:
    """Collect the cell."""
    worker = WorkerSpec(
        name=name,
        provider=LiteLLMProvider(
            name="bench", route="openai", api_base=url, limits=Limits(concurrency=WORKERS * CONCURRENCY)
        ),
        model=name,
        prompt_name="plain",
        prompt=PromptStyle(),
        sampling=Sampling(max_tokens=16),
        price=Price(input_per_mtok=1, output_per_mtok=2),
        limits=WorkerLimits(concurrency=CONCURRENCY),
    )
    with Ledger(ledger) as opened:
        collection = collect(worker, "bench", PROMPTS, opened).require_complete()
    if collection.calls != TASKS:
        raise SystemExit(f"{name} made {collection.calls} calls for {TASKS} tasks")


async def plain(url: str, name: str, calls: int, concurrency: int) -> None:
    """The first ``calls`` of the same calls without anything of ours."""
    litellm, slots = load_litellm(), asyncio.Semaphore(concurrency)

    async def ask(prompt: str) -> None:
        async with slots:
            await litellm.acompletion(
                model=f"openai/{name}",
                api_base=url,
                api_key="none",
                messages=[{"role": "user", "content": prompt}],
                temperature=0.0,
                max_tokens=16,
                timeout=45,
                **no_hidden_retries("openai"),
            )

    async with asyncio.TaskGroup() as group:
        for prompt in list(PROMPTS.values())[:calls]:
            group.create_task(ask(prompt))
    await litellm.close_litellm_async_clients()


async def raw(url: str, name: str) -> None:
    """As many open connections as all workers together have, and nothing but sockets."""
    host, port = urlsplit(url).hostname, urlsplit(url).port
    body = json.dumps({"model": name, "messages": [{"role": "user", "content": "?"}]}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: bench\r\nContent-Length: {len(body)}\r\n\r\n".encode()

    async def ask() -> None:
        reader, writer = await asyncio.open_connection(host, port)
        for _ in range(RAW):
            writer.write(head + body)
            fields = (await reader.readuntil(b"\r\n\r\n")).decode().lower().partition("content-length:")[2]
            await reader.readexactly(int(fields.partition("\r\n")[0]))
        writer.close()

    async with asyncio.TaskGroup() as group:
        for _ in range(WORKERS * CONCURRENCY):
            group.create_task(ask())


SUBJECTS: dict[str, Callable[[str, str, str], None]] = {
    "raw": lambda url, name, ledger: asyncio.run(raw(url, name)),
    "one": lambda url, name, ledger: asyncio.run(plain(url, name, ONE_BY_ONE, 1)),
    "plain": lambda url, name, ledger: asyncio.run(plain(url, name, TASKS, CONCURRENCY)),
    "ours": ours,
}


def obey(url: str) -> None:
    """Be a worker's process: read a subject, a worker's name and a ledger per line, do it, print how long it took."""
    asyncio.run(plain(url, "first_call", 1, 1))
    print("ready", flush=True)
    for line in sys.stdin:
        subject, name, ledger = line.split()
        began, cpu = time.time(), time.process_time()
        SUBJECTS[subject](url, name, ledger)
        print(json.dumps([began, time.time(), time.process_time() - cpu]), flush=True)


# --- what is measured -------------------------------------------------------------------------------------------------


class Processes:
    """The workers' processes, ready to ask."""

    def __init__(self, url: str) -> None:
        command = [sys.executable, "-m", "bench.bench_collection", url]
        self._processes = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603 - ourselves
            for _ in range(WORKERS)
        ]
        for number in range(WORKERS):
            self._read(number)

    def __call__(self, subject: str, label: str, *, ledger: str = "-", count: int = WORKERS) -> list[Timed]:
        """Let ``count`` of them do it at the same time, each as a worker (and model) of its own."""
        for number in range(count):
            stream = self._processes[number].stdin
            assert stream  # noqa: S101 - it is a pipe
            stream.write(f"{subject} {label}_{number} {ledger}\n")
            stream.flush()
        return [Timed(*json.loads(self._read(number))) for number in range(count)]

    def close(self) -> None:
        """Let them end."""
        for process in self._processes:
            process.communicate()

    def _read(self, number: int) -> str:
        stream = self._processes[number].stdout
        assert stream  # noqa: S101 - it is a pipe
        if not (line := stream.readline()):
            raise SystemExit(f"process {number} ended with {self._processes[number].wait()}")
        return line


def measure(server: ScriptedServer, directory: str) -> None:
    """Print all of it."""
    processes = Processes(server.url)
    server.delay_s = LATENCY_S
    alone = wall_s(processes("raw", "raw", count=1)) / (RAW * LATENCY_S)
    single = wall_s(processes("one", "one", count=1)) / ONE_BY_ONE
    runs: dict[str, list[list[Timed]]] = {"plain": [], "ours": []}
    for number in range(ROUNDS):
        ledger = f"sqlite:///{directory}/{number}.sqlite"
        Ledger(ledger).close()
        runs["plain"].append(processes("plain", f"plain_{number}"))
        runs["ours"].append(processes("ours", f"ours_{number}", ledger=ledger))
    processes.close()
    walls = {subject: min(map(wall_s, parts)) for subject, parts in runs.items()}
    cpu = {subject: min(map(cpu_ms, parts)) for subject, parts in runs.items()}
    one_by_one, ratio = single * WORKERS * TASKS, walls["ours"] / IDEAL_S
    say(f"server, {WORKERS * CONCURRENCY} bare connections", f"{alone:6.2f}   of its latency")
    for subject, name in {"plain": "litellm.acompletion alone", "ours": "collecting"}.items():
        say(name, f"{walls[subject]:6.2f} s {cpu[subject]:6.1f} ms of CPU per call")
    say("CPU, ratio", f"{cpu['ours'] / cpu['plain']:6.2f}")
    say(f"one by one, from {ONE_BY_ONE} calls", f"{one_by_one:6.0f} s, {one_by_one / walls['ours']:.0f} times as long")
    verdict = "PASS" if ratio <= TARGET else "FAIL"
    say(f"ratio to the ideal {IDEAL_S:.0f} s", f"{ratio:6.2f}   (target: at most {TARGET}) {verdict}")


def say(name: str, value: str) -> None:
    """Print a line."""
    print(f"{name:32} {value}")


def main() -> None:
    """Measure, or with an argument be one of the workers' processes."""
    if len(sys.argv) == 2:
        obey(sys.argv[1])
        return
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as directory, ScriptedServer() as server:
        measure(server, directory)


if __name__ == "__main__":
    main()
