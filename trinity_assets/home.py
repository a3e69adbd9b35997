"""Where what was paid for lives: ``TRINITY_HOME`` holds the ledger, the artifact store and the Dagster instance.

The ledger may lie elsewhere, on a PostgreSQL server that several machines share: ``TRINITY_LEDGER_URL`` names it.
"""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

HOME_VARIABLE = "TRINITY_HOME"
LEDGER_VARIABLE = "TRINITY_LEDGER_URL"
DAGSTER_HOME_VARIABLE = "DAGSTER_HOME"
INSTANCE_CONFIG = Path(__file__).parents[1] / "dagster.yaml"


def trinity_home() -> Path:
    """The directory named by ``TRINITY_HOME``, else the user's data directory, so that cleaning a checkout is safe."""
    chosen = os.environ.get(HOME_VARIABLE)
    return Path(chosen).expanduser().absolute() if chosen else platformdirs.user_data_path("trinity-assets")


def store_url(home: Path) -> str:
    """The artifact store inside ``home``."""
    return str(home / "store")


def ledger_url(home: Path) -> str:
    """The SQLAlchemy URL in ``TRINITY_LEDGER_URL``, password and all, else that of the SQLite file in ``home``."""
    return os.environ.get(LEDGER_VARIABLE, "").strip() or f"sqlite:///{home / 'ledger.sqlite'}"


def checkpoints_directory(home: Path) -> Path:
    """Where checkpoints are published."""
    return home / "checkpoints"


def trainings_directory(home: Path) -> Path:
    """Where interrupted trainings are kept until they are gone on with."""
    return home / "trainings"


def reports_directory(home: Path) -> Path:
    """Where the reports of routers are kept, each one HTML file."""
    return home / "reports"


def looks_log(home: Path) -> Path:
    """Where looks at held-out tasks are noted, of all routers, with a graph or without."""
    return home / "looks.jsonl"


def live_checks_directory(home: Path) -> Path:
    """Where the reports of live checks are kept."""
    return home / "live-check"


def dagster_home() -> Path:
    """The directory that ``DAGSTER_HOME`` names, else the one inside ``TRINITY_HOME``; it need not exist."""
    chosen = os.environ.get(DAGSTER_HOME_VARIABLE)
    return Path(chosen) if chosen else trinity_home() / "dagster"


def prepare_dagster_home() -> Path:
    """Make sure that ``DAGSTER_HOME`` exists and is set, with this project's ``dagster.yaml`` linked into it.

    A ``DAGSTER_HOME`` that is already set stays; its configuration is its owner's.
    """
    home = dagster_home()
    home.mkdir(parents=True, exist_ok=True)
    if os.environ.get(DAGSTER_HOME_VARIABLE):
        return home
    link = home / "dagster.yaml"
    if not link.exists() and INSTANCE_CONFIG.exists():
        link.unlink(missing_ok=True)
        link.symlink_to(INSTANCE_CONFIG)
    os.environ[DAGSTER_HOME_VARIABLE] = str(home)
    return home
