"""Sentinels: what they ask, what they never touch, and what they show."""

from __future__ import annotations

from pathlib import Path

import pytest

from trinity_assets.defs.drift import NO_DRIFT
from trinity_assets.store.tables import read_table
from trinity_assets.workers import collection
from trinity_assets.workers.retrying import RetryPolicy
from trinity_assets_tests.graph.scripted_models import CAPITALS, SUMS, WORKERS, behaving
from trinity_assets_tests.graph.small_catalog import ALL_ASSETS, DRIFT, Site, cell_names, names
from trinity_assets_tests.graph.test_epochs import check, drift_rows, metadata, otherwise, solved_sums
from trinity_assets_tests.scripted_server import status
from trinity_assets_tests.workers.test_ledger import rows

ANSWERS = {f"sentinels/{worker}/answers" for worker in WORKERS}
DRIFTS = {f"sentinels/{worker}/drift" for worker in WORKERS}
SELECTION = 'key:"sentinels/*"'

OF_ANSWERS = "select request_digest, text, epoch from answers where benchmark not like 'sentinel/%' order by 1"


def watch(site: Site, tasks: int = 6, repeats: int = 2) -> None:
    """Declare a sentinel."""
    text = f"sentinel: {{tasks: {tasks}, repeats: {repeats}, seed: 3}}\n"
    Path(site.catalog.directory / "operations.yaml").write_text(text)


def test_a_cold_start_with_sentinels_is_one_wave(empty_site: Site) -> None:
    watch(empty_site)
    built = empty_site.build()
    assert built.messages == {}
    assert built.waves == [ALL_ASSETS | ANSWERS | DRIFTS]
    assert built.requests == dict.fromkeys(WORKERS.values(), SUMS + CAPITALS + 6 * 2)


def test_a_sentinel_asks_its_tasks_again_at_each_tick_and_replaces_no_answer(site: Site) -> None:
    paid = rows(site.ledger_url, OF_ANSWERS)
    watch(site)
    built = site.build()
    assert built.waves == [ANSWERS | DRIFTS, {DRIFT}]
    assert built.requests == dict.fromkeys(WORKERS.values(), 6 * 2)
    assert site.build().waves == []
    for number, name in enumerate(("monday", "tuesday"), start=2):
        tick = site.rebaseline(SELECTION, name=name)
        assert tick.requests == dict.fromkeys(WORKERS.values(), 6 * 2)
        assert tick.waves == [ANSWERS, DRIFTS | {DRIFT}]
        assert metadata(site, "sentinels/terse/answers", "epoch", "epoch_opened_by") == [str(number), name]
        assert site.rebaseline(SELECTION, name=name).requests == {}
    assert site.build().waves == []
    assert rows(site.ledger_url, OF_ANSWERS) == paid
    counted = (
        "select benchmark, epoch, count(*) from answers where benchmark like 'sentinel/%' group by 1, 2 order by 1, 2"
    )
    assert rows(site.ledger_url, counted) == [
        (f"sentinel/{benchmark}", epoch, 3 * 3 * 2) for benchmark in ("capitals", "sums") for epoch in (1, 2, 3)
    ]
    epochs = "select benchmark, epoch from epochs where worker = 'terse' order by 1, 2"
    assert rows(site.ledger_url, epochs) == [
        ("capitals", 1), ("sentinel/", 1), ("sentinel/", 2), ("sentinel/", 3), ("sums", 1),
    ]  # fmt: skip


def test_a_sentinel_finds_a_changed_model_and_gives_the_floor_of_the_noise(site: Site) -> None:
    watch(site, tasks=30)
    site.build()
    assert check(site, "sentinels/terse/drift", NO_DRIFT) == (True, "no drift")
    lost = solved_sums("m_terse")
    site.server.script("m_terse", otherwise(site, "m_terse", lost))
    site.rebaseline(SELECTION, name="monday")
    asked = read_table(site.store, "sentinel_answers", site.sha256("sentinels/terse/answers")).frame
    assert asked.groupby("benchmark").size().to_dict() == {"sums": 18 * 2, "capitals": 12 * 2}
    expected = [f"sums: {task.id}" for task in lost if task.id in set(asked["task_id"])]
    assert len(expected) >= 6
    passed, said = check(site, "sentinels/terse/drift", NO_DRIFT)
    assert not passed
    first, second = said.splitlines()
    assert first.startswith(f"terse on sentinel: {len(expected)} of 30 verdicts changed (McNemar p ")
    assert "p above the floor of 0 of 30 (sentinel)" in first
    assert first.endswith(f"; newly lost: {', '.join(expected)}.")
    assert second == "terse on sentinel: the provider says that it ran m_terse → m_terse, m_terse-2"
    assert check(site, "sentinels/direct/drift", NO_DRIFT) == (True, "no drift")
    # Nobody was asked for the answers, which are as they were.
    assert site.rebaseline('key:"answers/direct/*"', name="monday").requests == {"m_direct": SUMS + CAPITALS}
    row = drift_rows(site)["direct/sums"]
    assert (row["floor_source"], row["floor_changed"], row["floor_pairs"]) == ("sentinel", 0, 18)
    assert row["floor_p"] == 1.0


def test_an_interrupted_sentinel_goes_on(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection, "RetryPolicy", lambda: RetryPolicy(attempts=1))
    watch(site)
    site.build()
    site.server.script("m_long", *[behaving(site.server)] * 4, status(401))
    broken = site.rebaseline(SELECTION, name="monday")
    assert names(broken.result.failed) == {"sentinels/long/answers"}
    said = broken.messages["sentinels/long/answers"].splitlines()
    gaps = [line.partition(" (provider")[0] for line in said if line.startswith("long on ")]
    assert gaps == [
        "long on sentinel/sums: 2 of 6 answers are missing",
        "long on sentinel/capitals: 6 of 6 answers are missing",
    ]
    site.server.script("m_long", behaving(site.server))
    assert site.build().requests == {"m_long": 6 * 2 - 4}
    assert metadata(site, "sentinels/long/answers", "epoch", "epoch_opened_by") == ["2", "monday"]
    assert cell_names("answers").isdisjoint(broken.built)
