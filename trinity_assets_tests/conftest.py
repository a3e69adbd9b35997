"""Fixtures that every room's tests share."""

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from trinity_assets_tests.needed import missing, needed_sandbox

PROJECT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Callable[[str], Path]:
    """Finds test data that lies beside the project, under `TRINITY_TEST_DATA` (default `../shared/data`).

    A test that needs a missing file is skipped, and fails with `CI=true`; either names the file.
    """
    root = Path(os.environ.get("TRINITY_TEST_DATA") or PROJECT / "../shared/data")

    def find(relative: str) -> Path:
        path = root / relative
        if not path.exists():
            missing(f"no test data at {path}; point TRINITY_TEST_DATA at the directory that holds {relative}")
        return path

    return find


@pytest.fixture
def sandbox() -> None:
    """For tests that run programs: in whatever tier holds on this machine."""
    needed_sandbox()


@pytest.fixture
def reasoning_gym() -> None:
    """For tests that generate tasks or score them: the extra `procedural`."""
    if importlib.util.find_spec("reasoning_gym") is None:
        missing("reasoning-gym is not installed; pip install 'trinity-assets[procedural]'")
