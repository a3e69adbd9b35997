"""How results look on an asset's page: table previews and pictures, each small enough for the event log.

The UI, the automation and every backfill read metadata from the event log, so one payload stays under about 50 kB.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import dagster as dg

from trinity_assets.catalog.catalog import Router

if TYPE_CHECKING:
    import pandas as pd

OWNERS = ["team:routing"]

PREVIEW_ROWS = 8
PREVIEW_CHARACTERS = 90
PICTURE_BYTES = 35_000


def router_group(router: Router) -> str:
    """The group that holds everything of a router."""
    return f"router_{router.name}"


def router_tags(router: Router) -> dict[str, str]:
    """The tags of everything of a router."""
    return {"router": router.name, "backbone": router.backbone.name}


def preview(frame: pd.DataFrame, rows: int = PREVIEW_ROWS) -> dg.MarkdownMetadataValue:
    """The first rows of a table as Markdown, long cells cut."""
    return dg.MetadataValue.md(markdown_table(frame.head(rows)))


def markdown_table(frame: pd.DataFrame) -> str:
    """``frame`` as a Markdown table; numbers to three places, long cells cut, a missing value as a dash."""
    shown = frame.astype(object).where(frame.notna(), None)
    lines = ["| " + " | ".join(map(str, frame.columns)) + " |", "|" + " --- |" * len(frame.columns)]
    lines += ["| " + " | ".join(_cell(value) for value in row) + " |" for row in shown.itertuples(index=False)]
    return "\n".join(lines)


def picture(png: bytes, alternative: str) -> dg.MarkdownMetadataValue:
    """A PNG image inside Markdown, or a note in its place where it is too large for the event log."""
    if len(png) > PICTURE_BYTES:
        return dg.MetadataValue.md(f"*{alternative}: {len(png)} bytes are too many to show here*")
    return dg.MetadataValue.md(f"![{alternative}](data:image/png;base64,{base64.b64encode(png).decode()})")


def _cell(value: object) -> str:
    if value is None:
        return "-"
    text = f"{value:.3f}" if isinstance(value, float) else str(value)
    text = text.replace("|", "\\|").replace("\n", " ⏎ ")
    return text if len(text) <= PREVIEW_CHARACTERS else text[: PREVIEW_CHARACTERS - 1] + "…"
