"""Who may ask a question: claims on the database, their leases, and what two processes do with them."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from trinity_assets.errors import LedgerError
from trinity_assets.workers.claimants import Claimant
from trinity_assets.workers.claiming import Leases, Questions
from trinity_assets.workers.claims import Claims, Lease
from trinity_assets.workers.collection import collect
from trinity_assets.workers.ledger import Entry, Ledger
from trinity_assets.workers.litellm_library import load_litellm
from trinity_assets.workers.requests import AnswerRequest, answer_requests
from trinity_assets.workers.retrying import RetryPolicy
from trinity_assets_tests import scripted_server as play
from trinity_assets_tests.scripted_server import ScriptedServer
from trinity_assets_tests.workers.collectors import Collector
from trinity_assets_tests.workers.conftest import MakeWorker, prompts
from trinity_assets_tests.workers.test_ledger import CALL, rows

ON_BOTH_DATABASES = True

SHORT = Lease(seconds=2.0, renew_every_s=0.2, look_first_s=0.02, look_every_s=0.1)
TASKS = 40

WAITING = Lease(look_first_s=0.02, look_every_s=0.1)


def anywhere_else(claims: Claims) -> Claims:
    """The same, as if its process could not be looked at from here."""
    claims.claimant = replace(claims.claimant, place=None)
    return claims


def wait_until(condition: Callable[[], bool], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_question_is_claimed_by_one(ledger: Ledger) -> None:
    first, second = ledger.claims(), ledger.claims()
    mine = first.claim(["a", "b", "a"])
    assert (mine.mine, mine.settled, mine.theirs) == ({"a", "b"}, frozenset(), frozenset())
    theirs = second.claim(["a", "b", "c"])
    assert (theirs.mine, theirs.theirs) == ({"c"}, {"a", "b"})
    assert theirs.holders == {f"process {os.getpid()} on {first.claimant.host}"}
    assert first.claim(["a"]).mine == {"a"}, "one's own claim is no other's"


def test_what_is_settled_is_not_claimed(ledger: Ledger, ledger_url: str) -> None:
    ledger.record_all([Entry(CALL, "four")])
    claimed = ledger.claims().claim(["d0", "d1"])
    assert (claimed.mine, claimed.settled, claimed.theirs) == ({"d1"}, {"d0"}, frozenset())
    assert rows(ledger_url, "select request_digest from claims") == [("d1",)]


def test_an_answer_that_comes_while_one_claims_is_seen(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look and the claim, another settles the question and gives its claim up."""
    claims = ledger.claims()
    exclusive = claims._database.exclusive

    def late(*arguments):
        ledger.record_all([Entry(CALL, "four")])
        return exclusive()

    monkeypatch.setattr(claims._database, "exclusive", late)
    claimed = claims.claim(["d0"])
    assert (claimed.mine, claimed.settled) == (frozenset(), {"d0"})


def test_a_claim_given_up_is_free(ledger: Ledger, ledger_url: str) -> None:
    first, second = ledger.claims(), ledger.claims()
    first.claim(["a", "b", "c"])
    second.release(["a"])
    assert second.claim(["a"]).theirs == {"a"}, "nobody gives up what another holds"
    first.release(["a"])
    assert second.claim(["a", "b"]).mine == {"a"}
    first.end()
    assert second.claim(["b", "c"]).mine == {"b", "c"}
    assert first.claim(["d"]).mine == frozenset(), "who has ended claims nothing"
    second.end()
    assert rows(ledger_url, "select count(*) from claims") == [(0,)]


def test_a_lease_expires_and_a_renewed_one_does_not(ledger: Ledger) -> None:
    lease = Lease(seconds=2.0)
    renewing, resting, other = (anywhere_else(ledger.claims(lease)) for _ in range(3))
    renewing.claim(["a"])
    resting.claim(["b"])
    assert other.claim(["a", "b"]).theirs == {"a", "b"}
    for _ in range(5):
        time.sleep(0.5)
        assert renewing.renew() == {"a"}
    claimed = other.claim(["a", "b"])
    assert (claimed.mine, claimed.theirs) == ({"b"}, {"a"})
    assert resting.renew() == frozenset(), "who slept too long learns that it holds nothing any more"


def test_renewing_gives_up_what_is_settled(ledger: Ledger, ledger_url: str) -> None:
    claims = ledger.claims()
    claims.claim(["d0", "d1"])
    ledger.record_all([Entry(CALL, "four")])
    assert claims.renew() == {"d1"}
    assert rows(ledger_url, "select request_digest from claims") == [("d1",)]


def test_a_process_that_is_seen_to_be_gone_holds_nothing(ledger: Ledger, ledger_url: str) -> None:
    program = (
        "import sys\n"
        "from trinity_assets.workers.ledger import Ledger\n"
        "print(Ledger(sys.argv[1]).claims().claim(['a', 'b']).mine == {'a', 'b'}, flush=True)\n"
        "sys.stdin.readline()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, ledger_url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout and process.stdout.readline() == "True\n"
    near, far = ledger.claims(), anywhere_else(ledger.claims())
    assert near.claim(["a"]).theirs == {"a"}
    process.kill()
    # Dead, and not even collected by its parent.
    wait_until(lambda: near.claim(["a"]).mine == {"a"})
    assert far.claim(["b"]).theirs == {"b"}, "from elsewhere nobody can see it: the lease has to expire"
    assert process.wait() == -signal.SIGKILL
    recycled = replace(Claimant.new(), process_started=1.0)
    assert Claims(ledger.database, Lease(), recycled).claim(["c"]).mine == {"c"}
    assert near.claim(["c"]).mine == {"c"}, "a process id that belongs to a younger process by now"


def test_many_claim_at_once_and_each_question_has_one_holder(ledger_url: str) -> None:
    digests = [f"d{index}" for index in range(200)]
    mine: list[frozenset[str]] = []

    def claim(offset: int) -> None:
        with Ledger(ledger_url) as own:
            claims = own.claims()
            for index in range(0, 200, 10):
                start = (index + offset) % 200
                mine.append(claims.claim(digests[start : start + 10]).mine)

    threads = [threading.Thread(target=claim, args=(offset,)) for offset in (0, 50, 100, 150)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(one for claimed in mine for one in claimed) == sorted(digests)


def test_leases_are_renewed_from_a_thread_even_while_the_loop_is_busy(ledger: Ledger) -> None:
    leases, other = Leases(anywhere_else(ledger.claims(SHORT))), ledger.claims()
    leases.start()
    leases.claim(["a"])
    time.sleep(2 * SHORT.seconds)
    assert leases.holds("a") and other.claim(["a"]).theirs == {"a"}
    leases.stop()
    assert other.claim(["a"]).mine == {"a"}


def test_a_lease_that_cannot_be_renewed_is_not_held(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    claims = ledger.claims(SHORT)
    leases = Leases(claims)
    leases.claim(["a"])

    def away() -> frozenset[str]:
        raise LedgerError("the server is away")

    monkeypatch.setattr(claims, "renew", away)
    leases.start()
    assert leases.holds("a")
    time.sleep(SHORT.seconds)
    assert not leases.holds("a")
    assert "the server is away" in caplog.text
    leases.stop()


def test_two_processes_with_the_same_cell_pay_once(
    server: ScriptedServer, make_worker: MakeWorker, ledger_url: str
) -> None:
    server.delay_s = 0.05
    collectors = [Collector(ledger_url, make_worker(), TASKS, WAITING) for _ in range(2)]
    for collector in collectors:
        collector.go()
    (counts, texts), (other_counts, other_texts) = (collector.collected(90) for collector in collectors)
    assert [collector.status() for collector in collectors] == [0, 0]
    assert server.count() == TASKS
    assert len({one.messages[-1]["content"] for one in server.received()}) == TASKS
    assert texts == other_texts, "both have the same answers"
    assert counts[0] + other_counts[0] == TASKS
    for calls, new, reused, failures in (counts, other_counts):
        assert new + reused == TASKS and calls == new and not failures
    assert rows(ledger_url, "select count(*) from claims") == [(0,)]


def test_who_waits_takes_over_from_a_claimant_that_was_killed_once_its_lease_is_over(
    server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger, ledger_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    load_litellm()
    caplog.set_level(logging.INFO, "trinity_assets")
    server.delay_s = 0.2
    worker = make_worker()
    killed = Collector(ledger_url, worker, TASKS, Lease(seconds=6.0, renew_every_s=0.5))
    killed.go()
    wait_until(lambda: server.count() >= 10)
    killed.kill()
    at_kill = time.monotonic()
    rows(ledger_url, "update claims set place = null")
    assert killed.status() == -signal.SIGKILL
    server.delay_s, asked = 0.0, server.count()
    collection = collect(worker, "bench", prompts(TASKS), ledger, lease=SHORT)
    assert 3.0 < time.monotonic() - at_kill < 30.0, "it waited for the lease, and no longer"
    assert collection.complete and collection.calls == TASKS - collection.reused
    assert f"waiting for {TASKS - collection.reused} answers that process {killed.pid} on" in caplog.text
    assert asked - collection.reused <= 4, "more was lost than the calls in flight"
    assert server.count() == asked + collection.calls


def test_what_failed_here_may_be_asked_by_others_at_once(
    server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger, hasty: RetryPolicy
) -> None:
    """And not only when the rest of the cell is done."""
    worker = make_worker(concurrency=1)
    failing, slow = (request.digest for request in answer_requests(worker, prompts(2), 1))
    server.script("plain", play.status(500), play.answer("late", delay_s=3.0))
    other = ledger.claims()
    taken_at: list[float] = []

    def take() -> None:
        wait_until(lambda: server.count() == 2)
        wait_until(lambda: other.claim([failing]).mine == {failing})
        taken_at.append(time.monotonic())

    taking = threading.Thread(target=take)
    taking.start()
    collection = collect(worker, "bench", prompts(2), ledger, retry=replace(hasty, attempts=1), lease=SHORT)
    ended_at = time.monotonic()
    taking.join(60)
    assert taken_at and taken_at[0] < ended_at - 1.0
    assert collection.failures == {"server_error": 1} and set(ledger.settled([failing, slow])) == {slow}


def test_answers_that_come_from_elsewhere_are_counted_once(
    server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    load_litellm()
    caplog.set_level(logging.INFO, "trinity_assets")
    server.delay_s = 0.05
    worker = make_worker(concurrency=4)
    digests = [request.digest for request in answer_requests(worker, prompts(20), 1)]
    other = ledger.claims()
    other.claim(digests[:8])

    def answer() -> None:
        wait_until(lambda: server.count() == 12 and "waiting for 8 answers" in caplog.text)
        ledger.record_all([Entry(replace(CALL, request_digest=digest), "theirs") for digest in digests[:8]])
        other.end()

    answering = threading.Thread(target=answer)
    answering.start()
    collection = collect(worker, "bench", prompts(20), ledger, lease=SHORT)
    answering.join(60)
    assert (collection.calls, collection.new, collection.reused) == (12, 12, 8)
    assert list(collection.frame["text"][:9]) == ["theirs"] * 8 + ["QUESTION 8"]
    assert "20/20 answers" in caplog.text
    assert f"waiting for 8 answers that process {os.getpid()} on" in caplog.text


def test_a_question_whose_lease_was_lost_is_not_asked_again(
    server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger, ledger_url: str
) -> None:
    """Another one took it over while this process stood still: its answer is waited for."""
    worker = make_worker()
    request = answer_requests(worker, prompts(1), 1)[0]
    claims, thief = ledger.claims(SHORT), ledger.claims()

    async def lose() -> AnswerRequest | None:
        async with Questions("cell", [request], claims) as questions:
            assert await questions.next(asyncio.sleep) == request
            await asyncio.to_thread(rows, ledger_url, "update claims set expires_at = 1")
            assert thief.claim([request.digest]).mine == {request.digest}
            while questions.holds(request):
                await asyncio.sleep(0.01)
            questions.lost(request)
            following = asyncio.create_task(questions.next(asyncio.sleep))
            await asyncio.sleep(0.3)
            assert not following.done()
            ledger.record_all([Entry(replace(CALL, request_digest=request.digest), "theirs")])
            return await following

    assert asyncio.run(lose()) is None
    assert server.count() == 0


def test_no_commit_and_no_claim_is_made_on_the_event_loop(
    server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: set[str] = set()
    writing = ledger.database.writing

    def seen():
        used.add(threading.current_thread().name)
        return writing()

    monkeypatch.setattr(ledger.database, "writing", seen)
    assert collect(make_worker(), "bench", prompts(6), ledger, lease=SHORT).complete
    assert used and threading.main_thread().name not in used
