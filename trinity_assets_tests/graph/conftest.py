"""The small catalog on a site of its own, for each test of the graph."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from trinity_assets_tests.graph import small_catalog
from trinity_assets_tests.graph.small_catalog import Site


@pytest.fixture
def empty_site(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Iterator[Site]:
    """Nothing is built yet."""
    with small_catalog.empty_site(tmp_path_factory.getbasetemp(), tmp_path / "empty") as site:
        yield site


@pytest.fixture
def site(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Iterator[Site]:
    """Everything is built."""
    with small_catalog.built_site(tmp_path_factory.getbasetemp(), tmp_path / "built") as site:
        yield site
