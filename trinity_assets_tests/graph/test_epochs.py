"""Asking again: what a new epoch asks and rebuilds, what it finds, and how an interrupted one goes on."""

from __future__ import annotations

from trinity_assets_tests.graph.small_catalog import CAPITALS, DRIFT, SUMS, Site, cell_names

EVERYTHING_ASKED = {"m_direct": SUMS + CAPITALS, "m_terse": SUMS + CAPITALS, "m_long": SUMS + CAPITALS}


def test_equal_answers_of_a_new_epoch_rebuild_nothing_but_the_comparison(site: Site) -> None:
    again = site.rebaseline()
    assert again.messages == {}
    assert again.requests == EVERYTHING_ASKED
    assert again.waves == [cell_names("answers"), {DRIFT}]
    assert again.result.complete
    assert site.build().waves == []
