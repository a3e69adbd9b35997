"""The rules of the house: imports go downward, Dagster stays in its rooms, and loading definitions stays light."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import trinity_assets

ROOT = Path(trinity_assets.__file__).parent
PROJECT = ROOT.parent

# Each room may import the rooms above it in this list; rooms on one line do not know each other, but for
# those of the ground and those of the top.
FLOORS = [
    {"errors", "files", "home", "printing", "progress", "spec", "texts"},
    {"store", "sandbox"},
    {"benchmarks", "workers", "backbones"},
    {"recorded"},
    {"grading"},
    {"routing", "live_check"},
    {"checkpoints"},
    {"serving"},
    {"catalog"},
    {
        "defs",
        "admission_command",
        "cli",
        "definitions",
        "build_progress",
        "by_hand",
        "epoch_commands",
        "ledger_commands",
        "options",
        "plan_command",
        "live_check_command",
        "train_command",
    },
]
DAGSTER_ROOMS = {"defs", "definitions"}
DAGSTER_INSIDE = {"cli", "build_progress"}
HEAVY = [
    *("torch", "transformers", "litellm", "datasets", "xllamacpp", "cma", "matplotlib", "scipy", "sklearn"),
    *("math_verify", "reasoning_gym", "sympy"),
]


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(ROOT.rglob("*.py")):
        yield path.relative_to(PROJECT).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__"), path


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Every imported module of a file, inside functions too, and whether the import is at module level."""
    tree = ast.parse(path.read_text())
    top = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, id(node) in top
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} uses a relative import"
            yield node.module or "", id(node) in top


def room(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def floor(name: str) -> int:
    return next(number for number, rooms in enumerate(FLOORS) if name in rooms)


@pytest.mark.parametrize(("module", "path"), [pytest.param(m, p, id=m) for m, p in modules() if room(m)])
def test_imports_go_downward(module: str, path: Path) -> None:
    for imported, _ in imports(path):
        if imported.split(".")[0] != "trinity_assets":
            continue
        mine, theirs = room(module), room(imported)
        below = mine == theirs or floor(theirs) < floor(mine)
        assert below or any({mine, theirs} <= rooms for rooms in (FLOORS[0], FLOORS[-1])), (
            f"{module} imports {imported}, which is not below it"
        )


@pytest.mark.parametrize(("module", "path"), [pytest.param(m, p, id=m) for m, p in modules()])
def test_only_the_graph_knows_dagster(module: str, path: Path) -> None:
    for imported, at_module_level in imports(path):
        if imported.split(".")[0] == "dagster":
            assert room(module) in DAGSTER_ROOMS or (room(module) in DAGSTER_INSIDE and not at_module_level), (
                f"{module} imports {imported}"
            )


def test_every_room_is_on_a_floor() -> None:
    rooms = {room(module) for module, _ in modules()} - {""}
    assert rooms <= set().union(*FLOORS)


@pytest.mark.parametrize("catalog", ["offline", "live"])
def test_loading_definitions_imports_nothing_slow(catalog: str, tmp_path: Path) -> None:
    program = (
        "import json, sys, trinity_assets.definitions as d; d.defs();"
        f"print(json.dumps([name for name in {HEAVY} if name in sys.modules]))"
    )
    environment = {
        "PATH": os.environ["PATH"],
        "TRINITY_CATALOG": str(PROJECT / "data" / catalog),
        "TRINITY_HOME": str(tmp_path),
    }
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert json.loads(result.stdout) == []
    assert list(tmp_path.iterdir()) == []
