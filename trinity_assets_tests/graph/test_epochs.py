"""Asking again: what a new epoch asks and rebuilds, what it finds, and how an interrupted one goes on."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import dagster as dg
import pandas as pd
import pytest

from trinity_assets.defs.answers import MOSTLY_ANSWERED
from trinity_assets.defs.drift import NO_DRIFT
from trinity_assets.defs.lineage import recorded_metadata
from trinity_assets.defs.rebaselining import held_up
from trinity_assets.errors import SelectionError
from trinity_assets.store.tables import read_table
from trinity_assets.workers import collection
from trinity_assets.workers.retrying import RetryPolicy
from trinity_assets_tests.graph import small_catalog
from trinity_assets_tests.graph.scripted_models import CAPITALS, SUMS, TASKS, Task, behaving, solved
from trinity_assets_tests.graph.small_catalog import DRIFT, ROUTER, Site, cell_names, names
from trinity_assets_tests.scripted_server import Behaviour, answer, status
from trinity_assets_tests.workers.test_ledger import rows

EVERYTHING_ASKED = {"m_direct": SUMS + CAPITALS, "m_terse": SUMS + CAPITALS, "m_long": SUMS + CAPITALS}


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries as many as ever, without the waiting."""
    monkeypatch.setattr(collection, "RetryPolicy", lambda: RetryPolicy(base_s=0.001, cap_s=0.002))


def key_of(asset: str) -> dg.AssetKey:
    return dg.AssetKey(asset.split("/"))


def check(site: Site, asset: str, name: str) -> tuple[bool, str]:
    """Whether the newest check passed, and what it says."""
    key = dg.AssetCheckKey(key_of(asset), name)
    with site.instance() as instance:
        record = instance.event_log_storage.get_latest_asset_check_execution_by_key([key])[key]
    assert record.event is not None and record.event.dagster_event is not None
    evaluation = record.event.dagster_event.asset_check_evaluation_data
    assert evaluation.severity is dg.AssetCheckSeverity.WARN
    return evaluation.passed, str(evaluation.description)


def metadata(site: Site, asset: str, *wanted: str) -> list[str | None]:
    with site.instance() as instance:
        return [recorded_metadata(instance, key_of(asset), name) for name in wanted]


def drift_rows(site: Site) -> dict[str, pd.Series]:
    """The rows of the report by cell."""
    frame = read_table(site.store, "drift", site.sha256(DRIFT)).frame
    known = frame.astype(object).where(frame.notna(), None)
    return {f"{row['worker']}/{row['benchmark']}": row for _, row in known.iterrows()}


def otherwise(site: Site, model: str, tasks: Iterable[Task]) -> Behaviour:
    """``model`` as it was, but for a wrong answer to ``tasks``, and under another name."""
    changed = {task.question for task in tasks}
    good = behaving(site.server)

    def reply(received: Any) -> Any:
        if any(question in received.messages[-1]["content"] for question in changed):
            return answer("-1", model=f"{model}-2")(received)
        return good(received)

    return reply


def solved_sums(model: str) -> list[Task]:
    return [task for task in TASKS["sums"][:SUMS] if solved(model, task)]


def test_equal_answers_of_a_new_epoch_rebuild_nothing_but_the_comparison(site: Site) -> None:
    assert check(site, DRIFT, NO_DRIFT) == (True, "one epoch so far")
    before = site.data_versions(cell_names("answers"))
    again = site.rebaseline()
    assert again.messages == {}
    assert again.requests == EVERYTHING_ASKED
    assert again.waves == [cell_names("answers"), {DRIFT}]
    assert again.result.complete
    assert site.data_versions(before) == before
    assert metadata(site, "answers/terse/sums", "epoch", "epoch_opened_by") == ["2", "once more"]
    assert check(site, DRIFT, NO_DRIFT) == (True, "no drift")
    assert {(row["earlier_epoch"], row["epoch"], row["note"]) for row in drift_rows(site).values()} == {(1, 2, None)}
    assert sum(row["pairs"] for row in drift_rows(site).values()) == 3 * (SUMS + CAPITALS)
    assert site.build().waves == []

    # The same name again is a re-execution: it asks nobody.
    once_more = site.rebaseline()
    assert once_more.requests == {}
    assert metadata(site, "answers/terse/sums", "epoch") == ["2"]
    assert rows(site.ledger_url, "select epoch, count(*) from epochs group by epoch order by epoch") == [(1, 6), (2, 6)]


def test_a_changed_model_is_found_with_exactly_its_tasks(site: Site) -> None:
    table, head, evaluation, checkpoint = ROUTER
    lost = solved_sums("m_terse")[:8]
    site.server.script("m_terse", otherwise(site, "m_terse", lost))
    again = site.rebaseline()
    assert again.requests == EVERYTHING_ASKED
    assert again.waves == [
        cell_names("answers"), {"solves/terse/sums"}, {table}, {head}, {evaluation}, {checkpoint}, {DRIFT},
    ]  # fmt: skip
    found = drift_rows(site)
    assert list(found["terse/sums"]["newly_lost"]) == [task.id for task in lost]
    assert all(not len(row["newly_solved"]) for row in found.values())
    assert [cell for cell, row in found.items() if len(row["newly_lost"])] == ["terse/sums"]
    # The sign test on 8 of 8, among the tests of six cells.
    assert (found["terse/sums"]["mcnemar_p"], found["terse/sums"]["mcnemar_adjusted"]) == (2 / 256, 12 / 256)
    passed, said = check(site, DRIFT, NO_DRIFT)
    assert not passed
    ids = ", ".join(task.id for task in lost)
    assert said.splitlines() == [
        f"terse on sums: 8 of 24 verdicts changed (McNemar p 0.00781 (adjusted 0.0469)); newly lost: {ids}.",
        "terse on sums: the provider says that it ran m_terse → m_terse, m_terse-2",
    ]
    page, named = metadata(site, DRIFT, "verdicts", "tasks")
    assert page is not None and "| terse on sums | 1 → 2 | 24 | 0 | 8 |" in page
    assert named == "- terse on sums, newly lost: " + ", ".join(task.id for task in lost)
    assert site.build().waves == []


@pytest.mark.usefixtures("hasty")
def test_an_interrupted_epoch_goes_on_as_itself_and_asks_only_the_rest(site: Site) -> None:
    good = behaving(site.server)
    site.server.script("m_long", *[good] * 10, status(401))
    broken = site.rebaseline(name="monday")
    assert names(broken.result.failed) == cell_names("answers", ["long"])
    assert broken.waves == [cell_names("answers"), {DRIFT}], "what failed keeps nothing else from being compared"
    found = drift_rows(site)
    assert {cell: row["note"] for cell, row in found.items() if row["note"]} == {
        "long/sums": "one epoch so far",
        "long/capitals": "one epoch so far",
    }
    site.server.script("m_long", good)
    healed = site.build()
    assert healed.requests == {"m_long": SUMS + CAPITALS - 10}
    assert healed.waves == [cell_names("answers", ["long"])]
    for benchmark in TASKS:
        assert metadata(site, f"answers/long/{benchmark}", "epoch", "epoch_opened_by") == ["2", "monday"]
    assert site.rebaseline(name="monday").requests == {}
    # Complete, so that the next name opens the next.
    assert site.rebaseline('key:"answers/long/sums"', name="tuesday").requests == {"m_long": SUMS}
    assert metadata(site, "answers/long/sums", "epoch", "epoch_opened_by") == ["3", "tuesday"]


@pytest.mark.usefixtures("hasty")
def test_another_name_resumes_what_was_interrupted(site: Site) -> None:
    site.server.script("m_long", *[behaving(site.server)] * 5, status(401))
    selection = 'key:"answers/long/sums"'
    assert not site.rebaseline(selection, name="monday").result.complete
    site.server.script("m_long", behaving(site.server))
    resumed = site.rebaseline(selection, name="tuesday")
    assert resumed.requests == {"m_long": SUMS - 5}
    assert metadata(site, "answers/long/sums", "epoch", "epoch_opened_by") == ["2", "monday"]
    assert site.rebaseline(selection, name="tuesday").requests == {}


def test_what_waits_for_something_else_is_no_part_of_asking_again(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    """In a home that holds answers only: no router was ever built, and none of its features is."""
    cells = cell_names("answers", benchmarks=["capitals"])
    with small_catalog.empty_site(tmp_path_factory.getbasetemp(), tmp_path / "answers") as site:
        site.catalog.edit("routers.yaml", "[sums, capitals]", "[capitals]")
        site.build('+key:"answers/*"')
        again = site.rebaseline()
        assert again.requests == dict.fromkeys(EVERYTHING_ASKED, CAPITALS)
        assert again.waves == [cells, cell_names("solves", benchmarks=["capitals"]), {DRIFT}]
        assert again.result.complete
        asked = frozenset(map(key_of, cells))
        with site.instance() as instance:
            assert names(held_up(site.definitions(), instance, asked)) == set(ROUTER)


@pytest.mark.usefixtures("hasty")
def test_an_epoch_begun_in_another_ledger_than_the_cells_was_built_with_goes_on(
    site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """That the cell was complete with the other one says nothing of this one."""
    url = f"sqlite:///{tmp_path / 'new.sqlite'}"
    monkeypatch.setenv("TRINITY_LEDGER_URL", url)
    site.catalog.edit("workers.yaml", "Be brief.", "Be very brief.")
    site.server.script("m_terse", *[behaving(site.server)] * 5, status(401))
    selection = 'key:"answers/terse/capitals"'
    assert site.build(selection).messages
    assert rows(url, "select epoch, completed_at from epochs") == [(1, None)]
    site.server.script("m_terse", behaving(site.server))
    asked = len(rows(url, "select request_digest from answers"))
    assert site.rebaseline(selection).requests["m_terse"] == CAPITALS - asked
    assert rows(url, "select epoch, completed_at is not null from epochs") == [(1, True)]


def test_a_selection_without_answers_that_are_asked_is_refused(site: Site) -> None:
    with pytest.raises(SelectionError, match="holds no answers of a worker that is asked"):
        site.rebaseline('key:"solves/*"')


def test_a_changed_prompt_begins_the_comparison_anew(site: Site) -> None:
    site.rebaseline('key:"answers/terse/*"')
    assert drift_rows(site)["terse/sums"]["note"] is None
    site.catalog.edit("workers.yaml", "Be brief.", "Be very brief.")
    built = site.build()
    assert built.waves == [cell_names("answers", ["terse"]), {ROUTER[0], DRIFT}, *({one} for one in ROUTER[1:])]
    assert built.requests == {"m_terse": SUMS + CAPITALS}
    assert drift_rows(site)["terse/sums"]["note"] == "one epoch so far"


def test_answers_lost_to_a_limit_are_a_warning(site: Site) -> None:
    passed, said = check(site, "answers/long/sums", MOSTLY_ANSWERED)
    assert not passed
    assert said.startswith("12.5% of 24 have no whole answer: 3 truncated; above 10%, raise the worker's max_tokens")
    assert check(site, "answers/terse/sums", MOSTLY_ANSWERED) == (
        True,
        "none of 24 was cut short, refused or left without an answer",
    )
