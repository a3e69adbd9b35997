"""The whole graph of the embedded catalog as text: what a change of a factory does to it is seen in review.

``python -m trinity_assets_tests.graph.test_golden_graph`` writes the golden file anew.
"""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import dagster as dg
import yaml

from trinity_assets.catalog.catalog import DEFAULT_CATALOG
from trinity_assets.catalog.loading import load_catalog
from trinity_assets.definitions import build_defs

GOLDEN = Path(__file__).parent / "golden_offline.yaml"
REGENERATE = "python -m trinity_assets_tests.graph.test_golden_graph"


def rendered_graph(definitions: dg.Definitions) -> str:
    """Every asset of ``definitions``, by name: what it depends on, where it is drawn, and how it is found and run."""
    assets: dict[str, dict[str, Any]] = {}
    for asset in definitions.resolve_all_asset_specs():
        key = asset.key
        tags = {name: value for name, value in asset.tags.items() if not name.startswith("dagster/kind/")}
        pools = {definitions.resolve_assets_def(key).op.pool} - {None}
        assets[key.to_user_string()] = {
            "deps": sorted(dep.asset_key.to_user_string() for dep in asset.deps),
            "group": asset.group_name,
            "kinds": sorted(asset.kinds),
            "owners": list(asset.owners),
            "tags": tags,
        } | ({"pool": pools.pop()} if pools else {})
    header = f"# The graph of data/offline. Written by `{REGENERATE}`.\n"
    return header + yaml.safe_dump(dict(sorted(assets.items())), sort_keys=False, default_flow_style=None, width=120)


def embedded_graph() -> str:
    return rendered_graph(build_defs(load_catalog(DEFAULT_CATALOG)))


def test_the_embedded_graph_is_the_golden_one() -> None:
    golden, now = GOLDEN.read_text(encoding="utf-8"), embedded_graph()
    difference = "\n".join(difflib.unified_diff(golden.splitlines(), now.splitlines(), "golden", "now", lineterm=""))
    assert now == golden, f"the graph has changed; if it should have, run `{REGENERATE}`:\n{difference}"


if __name__ == "__main__":
    GOLDEN.write_text(embedded_graph(), encoding="utf-8")
