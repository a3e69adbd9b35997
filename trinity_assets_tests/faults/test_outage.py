"""The provider goes down in the middle of a build, comes back, and the next build is killed: nothing is false or lost.

Four workers on 164 tasks. At every stage the ledger and the solve tables are held against what the script says of each
question, and the provider says how often it answered it.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import sqlite3
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import pytest

from trinity_assets.defs.lineage import newest_materialization
from trinity_assets.home import INSTANCE_CONFIG
from trinity_assets_tests.faults.test_killed_build import BUILD, session_processes, wait_until
from trinity_assets_tests.graph.small_catalog import Site, SmallCatalog, cell_names
from trinity_assets_tests.scripted_server import Received, Reply, ScriptedServer, answer, reset, status

WORKERS = ["ada", "bea", "cyd", "dot"]
TASKS = 164
CONCURRENCY = 8
"""The provider's limit on calls under way, for all processes together."""

DELAY_S = 0.03
BEFORE_OUTAGE, BEFORE_KILL = 150, 120
"""Answers to three workers: in the first build until the provider goes down, in the second until it is killed."""

FIRST = "ada"
"""The worker whose cell is complete before anything happens."""

SOLVES = '+key:"solves/*/sums"'
CELLS = cell_names("answers", WORKERS, ["sums"]) | cell_names("solves", WORKERS, ["sums"])

IMPATIENT = """\
import functools
from trinity_assets.workers import retrying
retrying.RetryPolicy = functools.partial(retrying.RetryPolicy, base_s=0.01, cap_s=0.05)
"""
"""Imported by every process of a build before anything else: its retries and probes are as many as ever, but soon."""

ENDS_WITHIN_S = 15.0

CATALOG = {
    "providers.yaml": """\
providers:
  scripted: {{kind: litellm, route: openai, api_base: {url}, limits: {{concurrency: {concurrency}}}, timeout_s: 20}}
""",
    "workers.yaml": """\
workers:
  ada: &worker {{provider: scripted, model: ada, prompt: plain, sampling: {{max_tokens: 32}}}}
  bea: {{<<: *worker, model: bea}}
  cyd: {{<<: *worker, model: cyd}}
  dot: {{<<: *worker, model: dot}}
prompts:
  plain: {{user: "{{prompt}}"}}
pools:
  all: [ada, bea, cyd, dot]
""",
    "benchmarks.yaml": """\
benchmarks:
  sums:
    source: {{kind: file, path: sums.jsonl}}
    grader: {{kind: number}}
    settlement: {{refused: unsolved}}
""",
    "backbones.yaml": """\
backbones:
  none: {{weights: {{kind: directory, path: nowhere}}}}
""",
    "routers.yaml": """\
routers:
  sums: {{pool: all, benchmarks: [sums], backbone: none, trainers: {{ridge: {{}}}}, export: ridge}}
""",
}

Question = tuple[str, str]
"""(worker, task id)."""

StartBuild = Callable[[Path], subprocess.Popen[bytes]]


@dataclass(frozen=True)
class Scripted:
    """What a worker says to a task: the status and the text that are right in the ledger, and the score for it."""

    status: str
    text: str | None
    score: float


def task_id(number: int) -> str:
    return f"sum_{number:03d}"


def terms(number: int) -> tuple[int, int]:
    return number + 11, number * 7 % 13 + 2


def scripted(worker: str, number: int) -> Scripted:
    """Each worker refuses a few tasks, is wrong at some, and right at the others."""
    position = WORKERS.index(worker)
    if (number + 5 * position) % 33 == 4:
        return Scripted("refused", None, 0.0)
    right = number * (position + 3) % 7 < 4
    return Scripted("answered", f"The sum is {sum(terms(number)) + (not right)}.", float(right))


SCRIPT: dict[Question, Scripted] = {
    (worker, task_id(number)): scripted(worker, number) for worker in WORKERS for number in range(TASKS)
}


class Provider:
    """Answers by the script, except from ``down_after`` answers on; then it is down until that is None again.

    What asks no task of the script, as a probe does, is answered too while it is up, and counts for nothing.
    """

    def __init__(self, server: ScriptedServer) -> None:
        self.server = server
        self.down_after: int | None = None
        self.asked: list[tuple[Question, bool]] = []
        """Every question that arrived, and whether it was answered, in order of arrival."""
        self._lock = threading.Lock()
        self._failures = itertools.cycle([status(503), reset(), status(502)])
        for worker in WORKERS:
            server.script(worker, self._reply)

    @property
    def answered(self) -> Counter[Question]:
        """How often each question was answered."""
        with self._lock:
            return Counter(question for question, good in self.asked if good)

    def _reply(self, received: Received) -> Reply:
        found = re.fullmatch(r"What is (\d+) plus \d+\?", received.messages[-1]["content"])
        number = int(found.group(1)) - 11 if found else None
        with self._lock:
            good = self.down_after is None or sum(good for _, good in self.asked) < self.down_after
            if number is not None:
                self.asked.append(((received.body["model"], task_id(number)), good))
            if not good:
                return next(self._failures)(received)
        if number is None:
            return answer("OK")(received)
        said = scripted(received.body["model"], number)
        if said.status == "answered":
            return answer(said.text, delay_s=self.server.delay_s)(received)
        # Two ways to refuse: the model's own words, and a filter in front of it.
        if number % 2:
            return answer(None, message={"refusal": "I would rather not."})(received)
        return status(400, "The input was flagged by our content filter")(received)


@pytest.fixture
def provider() -> Iterator[Provider]:
    with ScriptedServer(delay_s=DELAY_S) as server:
        yield Provider(server)


def new_site(directory: Path, provider: Provider) -> Site:
    """The catalog above at ``provider``, and a home where nothing is built."""
    catalog = directory / "catalog"
    catalog.mkdir(parents=True)
    for file, text in CATALOG.items():
        (catalog / file).write_text(text.format(url=provider.server.url, concurrency=CONCURRENCY))
    tasks = [(task_id(number), *terms(number)) for number in range(TASKS)]
    rows = [
        {"id": name, "question": f"What is {one} plus {two}?", "answer": str(one + two)} for name, one, two in tasks
    ]
    (catalog / "sums.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    site = Site(directory, SmallCatalog(catalog), provider.server)
    (site.home / "dagster").mkdir(parents=True)
    (site.home / "dagster" / "dagster.yaml").symlink_to(INSTANCE_CONFIG)
    return site


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The data versions of a build that nothing happened to."""
    with ScriptedServer() as server:
        site = new_site(tmp_path_factory.mktemp("undisturbed") / "site", Provider(server))
        with site.environment():
            assert not site.build(SOLVES).messages
            return site.data_versions(CELLS)


@pytest.fixture
def site(provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """The first worker's cell is built already."""
    site = new_site(tmp_path / "site", provider)
    (tmp_path / "sitecustomize.py").write_text(IMPATIENT)
    with site.environment():
        assert not site.build(f'+key:"solves/{FIRST}/sums"').messages
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")])))
        yield site


@pytest.fixture
def start_build(site: Site) -> Iterator[StartBuild]:
    """Starts a real build of the solve tables, in a session of its own, with what it says in the file that is given.

    None of its processes outlives the test.
    """
    started: list[subprocess.Popen[bytes]] = []

    def start(log: Path) -> subprocess.Popen[bytes]:
        with log.open("wb") as stream:
            command = [*BUILD, SOLVES]
            started.append(subprocess.Popen(command, stdout=stream, stderr=subprocess.STDOUT, start_new_session=True))
        return started[-1]

    yield start
    for build in started:
        for process in session_processes(build.pid):
            os.kill(process, signal.SIGKILL)
        build.wait()


def ledger_rows(site: Site, query: str) -> list[tuple[str, ...]]:
    connection = sqlite3.connect(f"file:{site.home / 'ledger.sqlite'}?mode=ro", uri=True)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def nothing_is_false(site: Site) -> tuple[set[Question], set[str]]:
    """Hold what there is against the script: no failure is an answer or a score, and no score is another's.

    Returns the questions that are settled, and the workers that have a solve table.
    """
    kept = {
        (worker, task): (status, text)
        for worker, task, status, text in ledger_rows(site, "select worker, task_id, status, text from answers")
    }
    assert kept == {question: (SCRIPT[question].status, SCRIPT[question].text) for question in kept}
    with site.instance() as instance:
        graded = {
            worker for worker in WORKERS if newest_materialization(instance, dg.AssetKey(["solves", worker, "sums"]))
        }
    for worker in graded:
        expected = {task: said.score for (of, task), said in SCRIPT.items() if of == worker}
        assert site.scores(worker, "sums") == expected
    return set(kept), graded


def test_after_an_outage_and_a_kill_everything_is_as_if_nothing_had_happened(
    site: Site, provider: Provider, undisturbed: dict[str, str], start_build: StartBuild, tmp_path: Path
) -> None:
    settled, graded = nothing_is_false(site)
    assert (len(settled), graded) == (TASKS, {FIRST})

    # The provider goes down; the build gives up, and its cells say why.
    provider.down_after = TASKS + BEFORE_OUTAGE
    log = tmp_path / "outage.log"
    assert start_build(log).wait(180) == 1, log.read_text()
    said = dict(re.findall(r"^  failed: (\S+): (.*)$", log.read_text(), re.MULTILINE))
    assert said.keys() == {f"answers/{worker}/sums" for worker in WORKERS if worker != FIRST}
    for asset, message in said.items():
        worker = asset.split("/")[1]
        assert re.match(rf"{worker} on sums: \d+ of {TASKS} answers are missing \(provider scripted: ", message)
    settled, graded = nothing_is_false(site)
    assert (len(settled), graded) == (TASKS + BEFORE_OUTAGE, {FIRST})
    assert provider.answered == Counter(settled)

    # It is back; the build that asks for the rest is killed in the middle, with everything that it started.
    provider.down_after = None
    before, log = len(provider.asked), tmp_path / "killed.log"
    build = start_build(log)
    enough = len(settled) + BEFORE_KILL
    asked_enough = wait_until(lambda: provider.answered.total() >= enough or build.poll() is not None, 120)
    assert asked_enough and build.poll() is None, log.read_text()
    os.killpg(build.pid, signal.SIGKILL)
    assert build.wait() == -signal.SIGKILL
    assert wait_until(lambda: not session_processes(build.pid), ENDS_WITHIN_S)
    assert not settled & {question for question, _ in provider.asked[before:]}
    settled, graded = nothing_is_false(site)
    assert FIRST in graded and len(settled) < len(SCRIPT)
    # What was answered and did not reach the ledger was under way at that moment.
    lost = provider.answered.keys() - settled
    assert settled <= provider.answered.keys() and len(lost) <= CONCURRENCY

    # The last build asks for what is left, and for what was under way once more.
    before, log = len(provider.asked), tmp_path / "again.log"
    assert start_build(log).wait(180) == 0, log.read_text()
    assert "1 earlier run was killed; what had settled is kept." in log.read_text()
    assert Counter(provider.asked[before:]) == {(question, True): 1 for question in SCRIPT.keys() - settled}
    settled, graded = nothing_is_false(site)
    assert (settled, graded) == (SCRIPT.keys(), set(WORKERS))
    assert provider.answered == {question: 2 if question in lost else 1 for question in SCRIPT}
    killed = set(ledger_rows(site, "select worker, task_id from calls where error_class = 'killed' and attempt > 0"))
    assert lost <= killed and len(killed) <= CONCURRENCY
    assert site.data_versions(CELLS) == undisturbed
