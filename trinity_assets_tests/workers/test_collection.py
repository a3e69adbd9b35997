from __future__ import annotations

import asyncio
import contextlib
import logging
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from trinity_assets.errors import IncompleteCellError, LedgerError, MissingKeyError, ProviderError
from trinity_assets.workers.asking import Cell, Terms, ask_missing
from trinity_assets.workers.collection import collect
from trinity_assets.workers.endpoints import open_endpoint
from trinity_assets.workers.ledger import Ledger
from trinity_assets.workers.requests import answer_requests
from trinity_assets.workers.retrying import RetryPolicy
from trinity_assets.workers.specs import Messages
from trinity_assets.workers.tables import ANSWERS_SCHEMA, answers_data_version
from trinity_assets_tests import scripted_server as play
from trinity_assets_tests.scripted_server import ScriptedServer
from trinity_assets_tests.workers.conftest import KEY, KEY_VARIABLE, MakeWorker, prompts
from trinity_assets_tests.workers.test_ledger import rows

ON_BOTH_DATABASES = True


def test_answers_come_in_task_order_whatever_order_they_arrived_in(
    server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger
) -> None:
    delays = [0.3, 0.0, 0.2, 0.0, 0.1, 0.0]
    server.script("plain", *[play.answer(str(delay), delay_s=delay) for delay in delays])
    collection = collect(make_worker(price={"input_per_mtok": 1, "output_per_mtok": 2}), "bench", prompts(6), ledger)
    assert list(collection.frame["task_id"]) == [f"task_{index}" for index in range(6)]
    assert (collection.new, collection.reused, collection.calls, collection.total) == (6, 0, 6, 6)
    assert collection.complete and collection.failures == {} and collection.by_status == {"answered": 6}
    assert (collection.input_tokens, collection.output_tokens) == (60, 30)
    assert collection.cost_usd == pytest.approx(6 * (10 + 2 * 5) / 1e6) and collection.cost_unknown == 0
    assert collection.require_complete() is collection


def test_a_call_says_which_price_made_its_cost(
    server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger, ledger_url: str
) -> None:
    priced = make_worker("priced", price={"input_per_mtok": 1, "output_per_mtok": 2})
    dearer = make_worker("dearer", price={"input_per_mtok": 1, "output_per_mtok": 3})
    for worker in (priced, dearer, make_worker("unpriced")):
        collect(worker, "bench", prompts(1), ledger)
    assert priced.price and dearer.price and priced.price.version != dearer.price.version
    assert rows(ledger_url, "select cost_source, price_version from calls order by id") == [
        ("price", priced.price.version),
        ("price", dearer.price.version),
        (None, None),
    ]


def test_the_frame_fits_the_contracts_columns_with_nulls_for_the_unknown(
    server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger
) -> None:
    server.script("plain", play.answer(None, usage=None))
    frame = collect(make_worker(), "bench", prompts(1), ledger).frame
    row = pa.Table.from_pandas(frame, schema=ANSWERS_SCHEMA, preserve_index=False).to_pylist()[0]
    assert (row["task_id"], row["sample"], row["status"], row["epoch"]) == ("task_0", 0, "no_answer", 1)
    assert [row[name] for name in ("text", "input_tokens", "output_tokens", "cost_usd")] == [None] * 4


def test_nothing_settled_is_asked_again(server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger) -> None:
    server.script("plain", play.answer("x", finish="length"), play.answer(None), play.answer("4"))
    first = collect(make_worker(), "bench", prompts(3), ledger)
    again = collect(make_worker(), "bench", prompts(5), ledger)
    assert server.count("plain") == 5
    assert (again.new, again.reused) == (2, 3)
    pd.testing.assert_frame_equal(again.frame.head(3), first.frame)


def test_a_new_epoch_asks_anew_and_the_old_one_is_still_there(
    server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger
) -> None:
    for epoch in (1, 2, 1, 2):
        collection = collect(make_worker(), "bench", prompts(2), ledger, epoch=epoch)
        assert set(collection.frame["epoch"]) == {epoch}
    assert server.count("plain") == 4


def test_equal_questions_are_asked_once(server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger) -> None:
    collection = collect(make_worker(), "bench", {"a": "same", "b": "same", "c": "other"}, ledger)
    assert server.count("plain") == 2
    assert list(collection.frame["text"]) == ["SAME", "SAME", "OTHER"]
    collect(make_worker(name="twin"), "elsewhere", {"z": "other"}, ledger)
    assert server.count("plain") == 2


def test_samples_are_asked_one_by_one(server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger) -> None:
    frame = collect(make_worker(samples=3), "bench", prompts(2), ledger).frame
    assert list(zip(frame["task_id"], frame["sample"], strict=True)) == [
        (f"task_{task}", sample) for task in range(2) for sample in range(3)
    ]
    assert server.count("plain") == 6


def test_a_settled_cell_needs_no_key_no_server_and_no_litellm(
    server: ScriptedServer, make_worker: MakeWorker, ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = make_worker()
    with Ledger(ledger_url) as ledger:
        collect(worker, "bench", prompts(3), ledger)
    monkeypatch.delenv(KEY_VARIABLE)
    program = (
        "import sys\n"
        "from trinity_assets.workers.collection import collect\n"
        "from trinity_assets.workers.ledger import Ledger\n"
        "from trinity_assets.workers.specs import WorkerSpec\n"
        "from trinity_assets_tests.workers.conftest import prompts\n"
        "worker = WorkerSpec.model_validate_json(sys.argv[2])\n"
        "collection = collect(worker, 'bench', prompts(3), Ledger(sys.argv[1]))\n"
        "print(collection.reused, collection.calls, 'litellm' in sys.modules, 'xllamacpp' in sys.modules)\n"
    )
    arguments = [sys.executable, "-c", program, ledger_url, worker.model_dump_json()]
    assert subprocess.check_output(arguments, text=True, timeout=60).split() == ["3", "0", "False", "False"]
    assert server.count() == 3


def test_a_missing_key_is_named_before_any_call(
    server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = make_worker()
    monkeypatch.delenv(KEY_VARIABLE)
    with pytest.raises(MissingKeyError, match=rf"{KEY_VARIABLE}.*or leave its workers out of the pools"):
        collect(worker, "bench", prompts(3), ledger)
    assert server.count() == 0


def test_the_variable_of_the_route_is_named_when_the_catalog_names_none(
    make_worker: MakeWorker, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NVIDIA_NIM_API_KEY", raising=False)
    worker = make_worker(route="nvidia_nim")
    provider = worker.provider.model_copy(update={"key_env": None, "api_base": None})
    with pytest.raises(MissingKeyError, match="NVIDIA_NIM_API_KEY"):
        collect(worker.model_copy(update={"provider": provider}), "bench", prompts(1), ledger)


def test_a_bad_key_costs_one_call(server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger) -> None:
    server.script("plain", play.status(401, f"Incorrect API key provided: {KEY}"))
    collection = collect(make_worker(concurrency=16), "bench", prompts(20), ledger)
    assert server.count() == 1
    assert collection.failures == {"not_asked": 19, "authentication": 1}
    with pytest.raises(
        IncompleteCellError, match=r"20 of 20 .*provider scripted: 19 not_asked, 1 authentication"
    ) as info:
        collection.require_complete()
    assert "check the provider's key" in str(info.value) and KEY not in str(info.value)


def test_a_fatal_outcome_ends_the_asking_and_keeps_what_was_paid(
    server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger
) -> None:
    server.script("plain", *[play.answer("ok", delay_s=0.01)] * 10, play.status(402))
    collection = collect(make_worker(concurrency=2), "bench", prompts(40), ledger)
    assert server.count() <= 12
    assert collection.new == 10 and collection.failures["quota"] >= 1
    server.script("plain", play.answer("ok"))
    again = collect(make_worker(), "bench", prompts(40), ledger)
    assert (again.reused, again.new, again.complete) == (10, 30, True)


def test_weather_is_retried_within_the_run_and_every_attempt_is_a_row(
    server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger, hasty: RetryPolicy
) -> None:
    server.script("plain", play.status(500), play.reset(), play.html(), play.answer("4"))
    collection = collect(make_worker(), "bench", prompts(1), ledger, retry=hasty)
    assert (collection.new, collection.calls, collection.failures) == (1, 4, {})
    assert collection.cost_unknown == 4


def test_retry_after_is_honoured(
    server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger, hasty: RetryPolicy
) -> None:
    server.script("plain", play.status(429, retry_after="1"), play.answer("4"))
    assert collect(make_worker(), "bench", prompts(1), ledger, retry=hasty).complete
    first, second = server.times("plain")
    assert 1.0 <= second - first < 2.0


def test_a_provider_that_asks_for_a_long_rest_gets_it(
    server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger
) -> None:
    server.script("plain", play.status(429, retry_after="3600"))
    started = time.monotonic()
    collection = collect(make_worker(), "bench", prompts(5), ledger)
    assert time.monotonic() - started < 10 and server.count() == 1
    assert collection.stopped == "the provider asks to wait 3600 s (rate_limited)"
    assert collection.failures == {"not_asked": 4, "rate_limited": 1}


def test_a_provider_that_stays_down_is_given_up_and_resumed(
    server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger, hasty: RetryPolicy
) -> None:
    server.script("plain", *[play.answer("ok")] * 4, play.status(503))
    down = collect(make_worker(concurrency=1), "bench", prompts(30), ledger, retry=replace(hasty, attempts=2))
    # Five failed calls (two attempts at two questions, one at a third), then probes only.
    assert server.count() == 4 + 5 + hasty.probes
    assert down.failures == {"not_asked": 23, "overloaded": 3} and len(down.frame) == 4
    server.script("plain", play.answer("ok"))
    up = collect(make_worker(), "bench", prompts(30), ledger)
    assert (up.reused, up.new, up.calls) == (4, 26, 27), "26 questions, and the probe that found it up"


def test_a_failure_is_neither_a_row_nor_an_answer(
    server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger, hasty: RetryPolicy
) -> None:
    server.script("plain", play.answer("ok"), play.status(500), play.answer("ok"))
    collection = collect(make_worker(concurrency=1), "bench", prompts(3), ledger, retry=replace(hasty, attempts=1))
    assert list(collection.frame["task_id"]) == ["task_0", "task_2"]
    assert collection.failures == {"server_error": 1}


def test_a_ledger_that_cannot_be_written_ends_the_asking(
    server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(entries: object, *, again: bool = False) -> None:
        raise LedgerError("disk full")

    monkeypatch.setattr(ledger, "record_all", full)
    with pytest.raises(LedgerError, match="disk full"):
        collect(make_worker(), "bench", prompts(20), ledger)
    assert server.count() == 1


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_turn_that_cannot_be_had_ends_the_cell_and_loses_nothing(
    server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger, hasty: RetryPolicy, concurrency: int
) -> None:
    """What surrounds a call fails at the fifth: calls under way are finished and kept, and the error is told."""
    server.delay_s = 0.1
    begun: list[Messages] = []

    @contextlib.asynccontextmanager
    async def turn(messages: Messages) -> AsyncIterator[dict[str, Any]]:
        begun.append(messages)
        if len(begun) == 5:
            raise ProviderError("no slot to be had")
        yield {"id_slot": len(begun)}

    worker = make_worker(concurrency=concurrency)
    requests = answer_requests(worker, prompts(20), 1)
    with open_endpoint(worker) as opened:
        endpoint = replace(opened, turn=turn)
        asking = ask_missing(Cell(worker, "bench", 1, "r"), requests, endpoint, ledger, Terms(hasty))
        with pytest.raises(ProviderError, match="no slot to be had"):
            asyncio.run(asking)
    assert len(begun) == 5 and server.count() == 4
    assert sorted(one.body["id_slot"] for one in server.received()) == [1, 2, 3, 4]
    assert len(ledger.settled(request.digest for request in requests)) == 4


def test_progress_is_logged(make_worker: MakeWorker, ledger: Ledger, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "trinity_assets")
    collect(make_worker(), "bench", prompts(3), ledger)
    assert "3 of 3 answers are to be asked" in caplog.text
    assert "scripted_worker on bench: 3/3 answers" in caplog.text


def test_the_data_version_sees_status_and_text_and_nothing_else(
    server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger
) -> None:
    frame = collect(make_worker(), "bench", prompts(3), ledger).frame
    version = answers_data_version(frame)
    assert answers_data_version(frame.iloc[::-1]) == version
    blind = frame.assign(
        latency_s=9.0, cost_usd=1.0, epoch=7, model_returned="x", request_digest="y", finish_reason=None
    )
    assert answers_data_version(blind) == version
    assert answers_data_version(frame.assign(text=["a", "b", "c"])) != version
    assert answers_data_version(frame.assign(status="truncated")) != version
