"""The Dagster instance of this project's home."""

from __future__ import annotations

import dagster as dg
from filelock import FileLock

from trinity_assets.home import prepare_dagster_home


def open_instance() -> dg.DagsterInstance:
    """The instance in ``DAGSTER_HOME``, made there if it is the first time.

    Dagster creates its tables when an instance is opened and does not expect company: of two processes that open a new
    home at once, one would fail.
    """
    with FileLock(prepare_dagster_home() / ".opening.lock"):
        return dg.DagsterInstance.get()
