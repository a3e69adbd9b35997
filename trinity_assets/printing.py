"""Tables and lists on a terminal, or in a pipe. What stands in them is shown as it is, never read as markup."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

PIPED_COLUMNS = 160
"""How wide tables are where no terminal says how wide it is."""

REASON_CHARACTERS = 200
"""How much of a reason one line shows."""

FOLDING = ("category", "question", "routers")
"""The headings of columns that fold where there is no room."""


def new_table(*headings: str, right: Sequence[str] = (), folding: Sequence[str] = FOLDING) -> Table:
    """A table whose columns keep their words whole, but for those that fold where there is no room."""
    made = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for heading in headings:
        folds = heading in folding
        made.add_column(heading, overflow="fold", no_wrap=not folds, justify="right" if heading in right else "left")
    return made


def add_row(shown: Table, *cells: str, end_section: bool = False) -> None:
    """Add ``cells`` as they are: Rich would read brackets in a text as its own markup."""
    shown.add_row(*map(Text, cells), end_section=end_section)


def print_table(shown: Table) -> None:
    """Print it, with an empty line above and below."""
    told = sys.stdout.isatty() or os.environ.get("COLUMNS")
    print()
    Console(width=None if told else PIPED_COLUMNS, highlight=False).print(shown)
    print()
