"""Options that several commands have, and commands with their options as they are typed."""

from __future__ import annotations

import os
import shlex
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


def as_typed(
    command: str,
    *arguments: str | None,
    name: str | None = None,
    budget: float | None = None,
    catalog: Path | None = None,
) -> str:
    """``trinity-assets`` with ``command`` as a shell takes it; what is None was not given and is left out."""
    options = {"--name": name, "--budget": budget, "--catalog": catalog}
    given = [part for option, value in options.items() if value is not None for part in (option, str(value))]
    return shlex.join(["trinity-assets", *command.split(), *given, *filter(None, arguments)])
