"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

CatalogOption = Annotated[
    Path | None,
    typer.Option("--catalog", help="The catalog's directory; default: $TRINITY_CATALOG, else the embedded one."),
]
