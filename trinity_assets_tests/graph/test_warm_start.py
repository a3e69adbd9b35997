"""A router that starts its searches from the heads that it had: from which, for which pool, and when from zero."""

from __future__ import annotations

import numpy as np

from trinity_assets.routing.head import Heads, read_heads
from trinity_assets_tests.graph.small_catalog import HEAD, Site

UP_TO_HEAD = f'+key:"{HEAD}"'
STAND_STILL = "sep_cma_es: {generations: 1, sigma0: 0.000000001}"
"""A search that ends where it started."""


def start_warm(site: Site) -> None:
    """From now on; what was built before did not."""
    site.catalog.edit("routers.yaml", "export: ridge", "export: ridge\n    warm_start: true")


def stand_still(site: Site) -> None:
    site.catalog.edit("routers.yaml", "sep_cma_es: {generations: 5}", STAND_STILL)


def trained(site: Site, head: str = HEAD) -> Heads:
    """The heads after a build that asks for nothing else of the router."""
    assert site.build(f'+key:"{head}"').result.complete
    return read_heads(site.store, site.sha256(head))


def started_from(heads: Heads) -> object:
    assert "started_from" not in heads.spec.trainers["ridge"].chosen
    return heads.spec.trainers["sep_cma_es"].chosen.get("started_from")


def unit_rows(heads: Heads, workers: list[str]) -> np.ndarray:
    """The searched head's rows of ``workers`` without their common scale, which means nothing."""
    names = [row.name for row in heads.spec.workers]
    rows = heads.weights["sep_cma_es"][[names.index(worker) for worker in workers]]
    return rows / np.linalg.norm(rows)


def test_searches_start_from_the_rows_that_the_pool_still_has(site: Site) -> None:
    cold = read_heads(site.store, site.sha256(HEAD))
    assert started_from(cold) is None
    start_warm(site)
    stand_still(site)
    site.catalog.edit("workers.yaml", "[direct, terse, long]", "[long, direct]")
    fewer = trained(site)
    assert started_from(fewer) == cold.sha256
    assert site.metadata(HEAD, "warm_start") == f"from the heads in {cold.sha256}"
    np.testing.assert_allclose(unit_rows(fewer, ["long", "direct"]), unit_rows(cold, ["long", "direct"]), rtol=1e-4)

    site.catalog.edit("workers.yaml", "[long, direct]", "[direct, terse, long]")
    grown = trained(site)
    assert started_from(grown) == fewer.sha256
    np.testing.assert_allclose(unit_rows(grown, ["long", "direct"]), unit_rows(fewer, ["long", "direct"]), rtol=1e-4)
    joined = unit_rows(grown, ["direct", "terse", "long"])[1]
    assert np.linalg.norm(joined) > 0
    assert grown.weights["ridge"].tobytes() == cold.weights["ridge"].tobytes()
    assert site.build(UP_TO_HEAD).waves == []


def test_what_is_no_start_is_said(site: Site) -> None:
    cold = read_heads(site.store, site.sha256(HEAD))
    start_warm(site)
    site.catalog.edit("routers.yaml", "  small:", "  other:")
    other = "routers/other/head"
    assert trained(site, other).data_version == cold.data_version
    assert site.metadata(other, "warm_start") == "from zero: no heads were trained before"

    site.catalog.edit("routers.yaml", "seed: 0, test", "seed: 1, test")
    assert started_from(trained(site, other)) is None
    said = site.metadata(other, "warm_start")
    assert said.startswith("from zero: the heads before have learnt from ")
    assert said.endswith(" of the tasks that are held out now")

    site.catalog.edit("backbones.yaml", "position: -2", "position: -1")
    assert started_from(trained(site, other)) is None
    assert site.metadata(other, "warm_start").startswith("from zero: the heads before were made for other features: ")


def test_heads_behind_the_heads_count_too(site: Site) -> None:
    """A head that has seen nothing held out itself may have started from one that has."""
    cold = read_heads(site.store, site.sha256(HEAD))
    start_warm(site)
    site.catalog.edit("routers.yaml", "benchmarks: [sums, capitals]", "benchmarks: [capitals]")
    assert started_from(trained(site)) == cold.sha256
    # Of sums, which the newest head has not seen, other tasks are held out now than were for the first.
    site.catalog.edit("routers.yaml", "benchmarks: [capitals]", "benchmarks: [sums]")
    site.catalog.edit("routers.yaml", "seed: 0, test", "seed: 1, test")
    assert started_from(trained(site)) is None
    assert site.metadata(HEAD, "warm_start").startswith("from zero: the heads before have learnt from ")
