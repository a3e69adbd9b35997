"""What steps share: the artifact store, the ledger, checkpoints and reports, opened only inside a step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg

from trinity_assets.files import replaced_whole
from trinity_assets.home import (
    checkpoints_directory,
    ledger_url,
    looks_log,
    reports_directory,
    store_url,
    trainings_directory,
    trinity_home,
)
from trinity_assets.store.artifacts import ArtifactStore

if TYPE_CHECKING:
    from trinity_assets.workers.ledger import Ledger


class StoreResource(dg.ConfigurableResource):
    """The artifact store at an fsspec URL."""

    url: str

    def open(self) -> ArtifactStore:
        """The store itself."""
        return ArtifactStore(self.url)


class LedgerResource(dg.ConfigurableResource):
    """The ledger that ``TRINITY_LEDGER_URL`` names, else the one in ``home``.

    Dagster shows and stores the configuration of a resource: a URL, which may hold a password, is not in it.
    """

    home: str

    def open(self) -> Ledger:
        """The ledger itself; its tables are made where they are missing."""
        from trinity_assets.workers.ledger import Ledger

        return Ledger(ledger_url(Path(self.home)))


class CheckpointsResource(dg.ConfigurableResource):
    """The directory under which checkpoints are published."""

    directory: str

    def path(self) -> Path:
        """That directory."""
        return Path(self.directory)


class TrainingsResource(dg.ConfigurableResource):
    """The directory in which interrupted trainings are kept."""

    directory: str

    def path(self) -> Path:
        """That directory; it need not exist."""
        return Path(self.directory)


class LooksResource(dg.ConfigurableResource):
    """The file in which looks at held-out tasks are noted, by ``trinity-assets train`` too."""

    file: str

    def path(self) -> Path:
        """That file; it need not exist."""
        return Path(self.file)


class ReportsResource(dg.ConfigurableResource):
    """The directory of the routers' reports."""

    directory: str

    def write(self, name: str, page: str) -> Path:
        """Write the page to the file of that name, whole or not at all; returns where it lies."""
        path = Path(self.directory) / f"{name}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        with replaced_whole(path) as temporary:
            temporary.write_text(page, encoding="utf-8")
        return path


def default_resources() -> dict[str, dg.ConfigurableResource]:
    """Everything inside ``TRINITY_HOME``."""
    home = trinity_home()
    return {
        "store": StoreResource(url=store_url(home)),
        "ledger": LedgerResource(home=str(home)),
        "checkpoints": CheckpointsResource(directory=str(checkpoints_directory(home))),
        "reports": ReportsResource(directory=str(reports_directory(home))),
        "looks": LooksResource(file=str(looks_log(home))),
        "trainings": TrainingsResource(directory=str(trainings_directory(home))),
    }
