"""The generations of a cell's answers: when one opens, who goes on with it, and when it is complete."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from trinity_assets.workers.collection import collect
from trinity_assets.workers.epochs import (
    Epoch,
    complete_epoch,
    earlier_answers,
    enter_epoch,
    next_epoch,
    present_epoch,
)
from trinity_assets.workers.ledger import Entry, Ledger
from trinity_assets_tests.scripted_server import ScriptedServer
from trinity_assets_tests.workers.conftest import MakeWorker, prompts
from trinity_assets_tests.workers.test_ledger import CALL, rows

ON_BOTH_DATABASES = True

RECORDED = "select epoch, opened_by, completed_at is not null from epochs order by epoch"


def entered(ledger: Ledger, new: str | None = None, *, by: str = "run", ever_complete: bool = False) -> Epoch:
    return enter_epoch(ledger, "w", "b", by=by, new=new, ever_complete=ever_complete)


def completed(ledger: Ledger, new: str | None = None) -> int:
    epoch = entered(ledger, new)
    complete_epoch(ledger, epoch)
    return epoch.number


def test_a_cell_begins_in_the_first_epoch_and_stays_there(ledger: Ledger, ledger_url: str) -> None:
    assert [completed(ledger), completed(ledger)] == [1, 1]
    assert rows(ledger_url, RECORDED) == [(1, "run", True)]


def test_a_sentinel_of_an_imported_ledger_goes_on_from_the_newest_epoch_of_its_answers(ledger: Ledger) -> None:
    ledger.record_all([Entry(replace(CALL, worker="w", benchmark="sentinel/b", epoch=4), "four")])
    assert present_epoch(ledger, "w", "sentinel/") == enter_epoch(ledger, "w", "sentinel/", by="tick").number == 4
    assert present_epoch(ledger, "w", "sentinel/b") == 4 and present_epoch(ledger, "w", "sentinel") == 1


def test_a_name_opens_one_epoch_however_often_it_comes(ledger: Ledger, ledger_url: str) -> None:
    completed(ledger)
    assert [completed(ledger, "monday"), completed(ledger, "monday"), completed(ledger)] == [2, 2, 2]
    assert completed(ledger, "tuesday") == 3
    assert completed(ledger, "monday") == 3, "its epoch is over; nothing goes back to it"
    assert rows(ledger_url, RECORDED) == [(1, "run", True), (2, "monday", True), (3, "tuesday", True)]


def test_an_interrupted_epoch_goes_on_under_every_name(ledger: Ledger, ledger_url: str) -> None:
    completed(ledger)
    assert entered(ledger, "monday").number == 2
    resumed = entered(ledger, "tuesday")
    assert (resumed.number, resumed.opened_by, resumed.names) == (2, "monday", ("monday", "tuesday"))
    assert completed(ledger) == 2
    assert entered(ledger, "tuesday").number == 2, "a re-execution of who resumed it asks nothing again"
    assert entered(ledger, "monday").number == 2
    assert rows(ledger_url, RECORDED) == [(1, "run", True), (2, "monday\ntuesday", True)]


def test_the_first_epoch_goes_on_until_it_was_complete_once(ledger: Ledger) -> None:
    assert entered(ledger, "monday").number == 1
    assert completed(ledger, "tuesday") == 1
    assert completed(ledger, "wednesday") == 2


def test_what_an_older_version_collected_is_complete(
    server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger, ledger_url: str
) -> None:
    collect(make_worker(name="w"), "b", prompts(2), ledger, run="long ago")
    assert entered(ledger, "monday", ever_complete=True).number == 2
    (first,) = rows(ledger_url, "select opened_at, opened_by from epochs where epoch = 1")
    assert first == rows(ledger_url, "select min(at), 'long ago' from calls")[0]


def test_an_imported_ledger_is_in_the_newest_epoch_of_its_answers(
    server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger
) -> None:
    for epoch in (1, 4, 2):
        collect(make_worker(name="w"), "b", prompts(1), ledger, epoch=epoch)
    assert entered(ledger).number == 4
    assert enter_epoch(ledger, "w", "elsewhere", by="run").number == 1


def imported(ledger: Ledger, *epochs: int) -> None:
    """Answers of another ledger in these epochs, which nobody has recorded here."""
    answers = [
        replace(CALL, request_digest=f"d{epoch}", worker="w", benchmark="b", run="", epoch=epoch) for epoch in epochs
    ]
    ledger.record_all([Entry(answer, "then") for answer in answers])


@pytest.mark.parametrize("recorded", [True, False])
def test_a_new_epoch_is_newer_than_every_answer_that_was_imported(ledger: Ledger, recorded: bool) -> None:
    """Its number is part of the requests: those of an epoch that has answers would be asked of nobody."""
    if recorded:
        completed(ledger)
    imported(ledger, 1, 2)
    assert next_epoch(ledger, "w", "b") == 3
    assert completed(ledger, "today") == 3
    assert completed(ledger, "today") == 3 == present_epoch(ledger, "w", "b")
    assert (next_epoch(ledger, "w", "b"), completed(ledger, "tomorrow")) == (4, 4)


def test_the_next_epoch_is_the_one_that_would_be_entered(ledger: Ledger) -> None:
    for name in ("monday", "tuesday"):
        expected = next_epoch(ledger, "w", "b")
        assert entered(ledger, name).number == expected == next_epoch(ledger, "w", "b"), "it goes on"
        completed(ledger)


def test_a_cell_without_answers_was_never_complete_here(ledger: Ledger) -> None:
    """It was built with another ledger."""
    begun = entered(ledger, ever_complete=True)
    assert (begun.number, begun.completed_at) == (1, None)
    assert entered(ledger, "monday", ever_complete=True).number == 1


def test_of_processes_at_once_one_opens_the_epoch(ledger_url: str) -> None:
    with Ledger(ledger_url) as ledger:
        completed(ledger)
    numbers = []

    def enter(number: int) -> int:
        with Ledger(ledger_url) as own:
            return entered(own, f"process {number}").number

    with ThreadPoolExecutor(6) as pool:
        numbers = list(pool.map(enter, range(6)))
    assert numbers == [2] * 6
    ((opened_by,),) = rows(ledger_url, "select opened_by from epochs where epoch = 2")
    assert sorted(str(opened_by).split("\n")) == [f"process {number}" for number in range(6)]


def test_cells_have_epochs_of_their_own(ledger: Ledger) -> None:
    completed(ledger)
    assert completed(ledger, "monday") == 2
    assert enter_epoch(ledger, "w", "other", by="run").number == 1
    assert enter_epoch(ledger, "other", "b", by="run").number == 1


def test_earlier_answers_are_those_to_the_same_questions(
    server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger
) -> None:
    worker = make_worker(samples=2)
    collect(worker, "b", prompts(2), ledger, epoch=1)
    collect(worker, "b", {"task_0": "another question"}, ledger, epoch=2)
    found = earlier_answers(ledger, worker, prompts(3), before=3)
    assert found is not None
    assert found[["task_id", "sample", "epoch"]].values.tolist() == [
        ["task_0", 0, 1], ["task_0", 1, 1], ["task_1", 0, 1], ["task_1", 1, 1],
    ]  # fmt: skip
    assert earlier_answers(ledger, worker, prompts(3), before=1) is None
    assert earlier_answers(ledger, make_worker(max_tokens=17, samples=2), prompts(3), before=3) is None


def test_requests_of_another_purpose_share_nothing(
    server: ScriptedServer, make_worker: MakeWorker, ledger: Ledger
) -> None:
    worker = make_worker()
    plain = collect(worker, "b", prompts(2), ledger)
    watched = collect(worker, "sentinel/b", prompts(2), ledger, purpose="sentinel")
    assert server.count("plain") == 4
    assert (watched.new, watched.reused) == (2, 0)
    assert set(plain.frame["request_digest"]).isdisjoint(watched.frame["request_digest"])


@pytest.mark.parametrize("name", ["by hand\n2026", "  by hand 2026 "])
def test_names_are_one_line(ledger: Ledger, name: str) -> None:
    completed(ledger)
    assert entered(ledger, name).opened_by == "by hand 2026"
