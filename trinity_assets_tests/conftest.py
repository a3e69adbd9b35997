"""Fixtures that every room's tests share."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Callable[[str], Path]:
    """Finds test data that lies beside the project, under `TRINITY_TEST_DATA` (default `../shared/data`).

    A missing file fails with `CI=true`, where it must be there, and elsewhere skips the test and names the file.
    """
    root = Path(os.environ.get("TRINITY_TEST_DATA") or PROJECT / "../shared/data")

    def find(relative: str) -> Path:
        path = root / relative
        if not path.exists():
            message = f"no test data at {path}; point TRINITY_TEST_DATA at the directory that holds {relative}"
            if os.environ.get("CI") == "true":
                pytest.fail(message)
            pytest.skip(message)
        return path

    return find
