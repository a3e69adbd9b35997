"""``trinity-assets rebaseline`` as it is typed: what it would ask, and one whole run in processes of its own."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from trinity_assets.catalog.catalog import DEFAULT_CATALOG
from trinity_assets.cli import app
from trinity_assets.errors import MissingKeyError
from trinity_assets.options import as_typed
from trinity_assets_tests.graph import small_catalog
from trinity_assets_tests.graph.scripted_models import CAPITALS
from trinity_assets_tests.graph.small_catalog import Site, cell_names

COMMAND = [str(Path(sys.executable).parent / "trinity-assets")]
"""In a process of its own, where steps are forked from one that is started in this test's environment."""


@pytest.fixture
def site(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Iterator[Site]:
    """Everything is built."""
    with small_catalog.built_site(tmp_path_factory.getbasetemp(), tmp_path / "built") as site:
        yield site


def test_a_dry_run_names_whose_answers_would_be_asked_again(site: Site) -> None:
    result = CliRunner().invoke(app, ["rebaseline", "--dry-run"])
    assert result.exit_code == 0, result.output
    first, *listed, last, price = result.output.splitlines()
    assert first == "Asked again, in a new epoch: 6 assets"
    assert {line.strip() for line in listed} == cell_names("answers")
    assert last == "What depends on these is built, too, where it comes out changed."
    assert price == "What it will take: trinity-assets plan --again"
    catalog = os.environ["TRINITY_CATALOG"]
    result = CliRunner().invoke(app, ["rebaseline", "--dry-run", "--budget", "5", "--catalog", catalog])
    assert result.output.splitlines()[-1] == f"What it will take: trinity-assets plan --again --catalog {catalog}"
    assert site.new_requests() == {}


def test_a_command_to_go_on_with_has_the_options_that_were_given() -> None:
    typed = as_typed("rebaseline", 'key:"answers/*"', name="this week", budget=0.000125, catalog=Path("my pool"))
    assert shlex.split(typed) == [
        "trinity-assets", "rebaseline", "--name", "this week", "--budget", "0.000125", "--catalog", "my pool",
        'key:"answers/*"',
    ]  # fmt: skip
    assert as_typed("build", None) == "trinity-assets build"


@pytest.mark.parametrize("selection", ['key:"answers/gpt*"', 'key:"sentinels/gpt*"'])
def test_a_provider_without_its_key_is_named_before_anything_is_asked(
    site: Site, monkeypatch: pytest.MonkeyPatch, selection: str
) -> None:
    monkeypatch.setenv("TRINITY_CATALOG", str(DEFAULT_CATALOG.parent / "live"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    result = CliRunner().invoke(app, ["rebaseline", selection])
    assert isinstance(result.exception, MissingKeyError)
    assert "OPENAI_API_KEY (provider openai)" in str(result.exception)


def test_one_cell_is_asked_again_and_compared(site: Site) -> None:
    arguments = [*COMMAND, "rebaseline", 'key:"answers/terse/capitals"', "--name", "this week"]
    done = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert site.new_requests() == {"m_terse": CAPITALS}
    lines = done.stdout.splitlines()
    assert "If this is interrupted, go on with: trinity-assets rebaseline --name 'this week' " in done.stdout
    assert lines[-2:] == [
        "2 assets built, 0 failed, 0 waiting for those.",
        "What changed is on the page of workers/drift.",
    ]
    again = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert (again.returncode, site.new_requests()) == (0, {}), again.stdout


EDITED = "the catalog was edited while this was built, and has it no longer"

DURING_THE_RUN = """
from trinity_assets.defs import console

class Editing(console.StepFormatter):
    def format(self, record):
        if "Executing steps using multiprocess executor" in record.getMessage():
            edit()
        return super().format(record)

console.StepFormatter = Editing
"""

BEFORE_THE_RUN = """
from trinity_assets.defs import pools

pools.apply_pool_limits = lambda *arguments: edit()
"""


@pytest.mark.parametrize(
    ("moment", "printed"),
    [
        (DURING_THE_RUN, f"  failed: answers/terse/capitals: {EDITED}"),
        (BEFORE_THE_RUN, f"error: answers/terse/capitals: {EDITED}; run the same command again for what it has now"),
    ],
    ids=["during the run", "before the run"],
)
def test_an_asset_that_the_catalog_has_no_longer_is_named(site: Site, moment: str, printed: str) -> None:
    """A run reads the catalog, and each of its steps does."""
    program = f"""
import os, pathlib, sys
from trinity_assets import cli

def edit():
    routers = pathlib.Path(os.environ["TRINITY_CATALOG"]) / "routers.yaml"
    routers.write_text(routers.read_text().replace("[sums, capitals]", "[sums]"))
{moment}
sys.argv = ["trinity-assets", "rebaseline", 'key:"answers/terse/capitals"']
cli.main()
"""
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert (done.returncode, site.new_requests()) == (1, {})
    assert printed in done.stdout.splitlines(), done.stdout
