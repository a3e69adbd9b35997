"""What workers of a table cost per million tokens, as a person declares it, for tables that count tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd
from pydantic import ValidationError

from trinity_assets.errors import TrainingError, listed
from trinity_assets.routing.table import table_workers
from trinity_assets.texts import printable, quoted
from trinity_assets.workers.specs import Price

TOKENS = ("input_tokens", "output_tokens")
"""The measures that prices are multiplied with."""


def declared_prices(declared: Any, where: str, table: pd.DataFrame) -> dict[str, Price]:
    """The prices, worker by worker, of a router ``table``; a worker that is not named has none.

    Args:
        declared: plain data, ``{"ada": {"input_per_mtok": 0.1, "output_per_mtok": 0.3}}``.
        where: what messages call it.

    Raises:
        TrainingError: every name that is no worker of the table, every price that is none, and every worker whose
            tokens the table does not count.
    """
    if not isinstance(declared, Mapping) or not declared:
        raise TrainingError(
            f"{where} holds no prices; give a mapping such as {{worker: {{input_per_mtok: 0.1, output_per_mtok: 0.3}}}}"
        )
    workers = table_workers(table)
    prices: dict[str, Price] = {}
    faults: list[str] = []
    for name, price in ((str(name), price) for name, price in declared.items()):
        if name not in workers:
            known = listed(list(map(printable, workers)), ", ")
            faults.append(f"{quoted(name)} is no worker of the table; those are {known}")
        elif uncounted := [f"{measure}__{name}" for measure in TOKENS if table[f"{measure}__{name}"].isna().all()]:
            columns = " and ".join(map(printable, uncounted))
            faults.append(f"{printable(name)}: a price is per token and the table has no number in {columns}")
        else:
            try:
                prices[name] = Price.model_validate(price)
            except ValidationError as error:
                faults += [f"{printable(name)}{fault}" for fault in _worded(error)]
    if faults:
        raise TrainingError(f"{where}: {listed(faults)}")
    return prices


def _worded(error: ValidationError) -> Iterator[str]:
    for fault in error.errors(include_url=False):
        yield "".join(f".{part}" for part in fault["loc"]) + f": {fault['msg']}"
