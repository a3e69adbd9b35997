"""Options that several commands have."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from trinity_assets.catalog.catalog import CATALOG_VARIABLE

CatalogOption = Annotated[
    Path | None,
    typer.Option("--catalog", help="The catalog's directory; default: $TRINITY_CATALOG, else the embedded one."),
]


def use_catalog(directory: Path | None) -> None:
    """Make ``directory`` the catalog of this process and of those that it starts, which read the variable."""
    if directory is not None:
        os.environ[CATALOG_VARIABLE] = str(directory.absolute())
