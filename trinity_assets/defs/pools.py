"""Pools: how many steps may ask one provider at once, whatever run they belong to.

A pool counts steps, not requests. The limits on requests are kept inside a step, so one step at a time keeps them for
the whole provider. An embedded model is free, and as many steps may serve it as there are cores. That two runs of the
same cell pay for a question once is not the pools' business but the ledger's (``workers/claims``).
"""

from __future__ import annotations

import dagster as dg

from trinity_assets.catalog.catalog import Catalog
from trinity_assets.workers.specs import ProviderSpec


def provider_pool(provider: ProviderSpec) -> str:
    """The pool of the steps that ask ``provider``."""
    return f"llm_{provider.name}"


def apply_pool_limits(instance: dg.DagsterInstance, catalog: Catalog) -> None:
    """Write the limits of the catalog's providers into the instance; a pool without one has the instance's default."""
    for provider in catalog.providers.values():
        instance.event_log_storage.set_concurrency_slots(provider_pool(provider), provider.parallel_steps)
