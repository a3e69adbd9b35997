"""Every way in which Dagster's own tools load this project, for both catalogs, without a key."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from trinity_assets.catalog.catalog import DEFAULT_CATALOG
from trinity_assets.catalog.loading import load_catalog
from trinity_assets.definitions import build_defs

PROJECT = Path(__file__).parents[2]
LIVE_KEYS = ("NVIDIA_NIM_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY")

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(params=["offline", "live"])
def catalog(request: pytest.FixtureRequest) -> Path:
    return DEFAULT_CATALOG.parent / request.param


@pytest.fixture
def run(catalog: Path, tmp_path: Path) -> Run:
    """Run a program of this environment in the project's root, on the catalog and an empty home."""
    (tmp_path / "dagster").mkdir()
    environment = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "HOME": str(tmp_path),
        "TRINITY_CATALOG": str(catalog),
        "TRINITY_HOME": str(tmp_path / "home"),
        "DAGSTER_HOME": str(tmp_path / "dagster"),
        "DO_NOT_TRACK": "1",
        "DAGSTER_DG_CLI_TELEMETRY_ENABLED": "false",
    }

    def start(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            arguments, cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=120, check=False
        )

    return start


@pytest.mark.parametrize(
    "command",
    [
        ["dagster", "definitions", "validate", "-w", "workspace.yaml"],
        ["dagster", "definitions", "validate"],
        ["dg", "check", "defs"],
    ],
    ids=" ".join,
)
def test_the_definitions_are_valid_for(command: list[str], run: Run) -> None:
    result = run(*command)
    assert result.returncode == 0, result.stdout + result.stderr


def test_dg_lists_every_asset(catalog: Path, run: Run, tmp_path: Path) -> None:
    result = run("dg", "list", "defs", "--json")
    assert result.returncode == 0, result.stderr
    listed = {asset["asset_key"] for asset in json.loads(result.stdout)["assets"]}
    definitions = build_defs(load_catalog(catalog))
    assert listed == {key.to_user_string() for key in definitions.resolve_all_asset_keys()}
    assert not (tmp_path / "home").exists(), "loading definitions wrote something"


@pytest.mark.parametrize("catalog", [DEFAULT_CATALOG.parent / "live"], ids=["live"])
def test_a_build_without_keys_ends_at_once_and_names_every_one(catalog: Path, run: Run, tmp_path: Path) -> None:
    result = run("trinity-assets", "build")
    assert result.returncode == 1
    (message,) = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert all(variable in message for variable in LIVE_KEYS)
    assert not (tmp_path / "home" / "ledger.sqlite").exists()
    assert not (tmp_path / "home" / "store").exists()
