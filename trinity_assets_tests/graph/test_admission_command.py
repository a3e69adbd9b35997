"""``trinity-assets admission``: what a worker adds, whether it is in the router's table or not yet."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import pytest

from trinity_assets.routing.headroom_report import admission_lines
from trinity_assets.routing.pool_admission import read_pool_outcomes
from trinity_assets.store.tables import read_table
from trinity_assets_tests.graph.small_catalog import TABLE, Site

Admission = Callable[..., tuple[int, str, str]]


@pytest.fixture
def admission(run: Admission) -> Admission:
    """``trinity-assets admission`` with these arguments: its exit status, its output, its complaint."""
    return functools.partial(run, "admission")


def test_a_worker_adds_the_same_in_the_pool_and_before_it_joins(site: Site, admission: Admission) -> None:
    status, within, _ = admission("long")
    assert status == 0
    heading, verdict, *gains = within.splitlines()
    assert heading == "router small, beside direct, terse"
    outcomes = read_pool_outcomes(site.store, site.sha256(TABLE))
    found = outcomes.admission("long")
    assert [verdict, *(gain.strip() for gain in gains)] == admission_lines(found, "long")
    train = outcomes.table[outcomes.table["split"] == "train"]
    scores = train[[f"score__{worker}" for worker in ("direct", "terse", "long")]].to_numpy()
    complete = scores[~np.isnan(scores).any(axis=1)]
    assert found.n_tasks == len(complete)
    assert found.oracle.value == pytest.approx(complete.max(axis=1).mean() - complete[:, :2].max(axis=1).mean())

    site.catalog.edit("workers.yaml", "[direct, terse, long]", "[direct, terse]")
    assert site.build(f'+key:"{TABLE}"').result.complete
    assert "score__long" not in read_table(site.store, "router_table", site.sha256(TABLE)).frame
    assert admission("long", "--router", "small") == (0, within, "")
    assert site.new_requests() == {}

    # Asked otherwise, its solves are those of another worker.
    site.catalog.edit("workers.yaml", "max_tokens: 64", "max_tokens: 65")
    status, _, complaint = admission("long")
    assert status == 1
    assert "sampling.max_tokens: 64 -> 65" in complaint and "Build that asset first" in complaint


def test_what_is_missing_is_named_with_what_builds_it(site: Site, admission: Admission) -> None:
    site.catalog.edit(
        "workers.yaml",
        "  long:\n",
        "  extra: {provider: scripted, model: m_extra, prompt: plain, sampling: {max_tokens: 9}}\n  long:\n",
    )
    assert admission("extra")[2] == (
        "error: extra has no solves on sums, capitals, which small learns from; with the worker in a router's pool, "
        'run `trinity-assets build \'+key:"solves/extra/sums" or +key:"solves/extra/capitals"\'`, which trains '
        "nothing\n"
    )
    assert admission("nobody")[2] == "error: there is no worker 'nobody'; declared: direct, terse, extra, long\n"
    assert admission("long", "--router", "none")[2] == "error: there is no router 'none'; declared: small\n"
    site.catalog.edit("workers.yaml", "max_tokens: 64", "max_tokens: 65")
    otherwise = (
        "asked otherwise for the table of small than the catalog says now, or left its pool since; run "
        "`trinity-assets build '+key:\"routers/small/table\"'`\n"
    )
    # What it is measured beside was measured otherwise, whoever is asked about.
    assert admission("long")[2] == admission("terse")[2] == f"error: long was {otherwise}"
    site.catalog.edit("workers.yaml", "[direct, terse, long]", "[terse, long]")
    assert admission("terse")[2] == f"error: direct, long were {otherwise}"
    site.catalog.edit("routers.yaml", "  small:", "  other:")
    assert admission("long")[2] == (
        "error: router other has no table yet; run `trinity-assets build '+key:\"routers/other/table\"'`\n"
    )
