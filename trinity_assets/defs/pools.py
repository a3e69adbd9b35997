"""Pools: how many steps of a kind run at once, whatever run they belong to.

A pool counts steps, not requests: what a provider allows is kept by permits (``workers/permits``), and that two runs of
the same cell pay for a question once by claims (``workers/claims``).
"""

from __future__ import annotations

import dagster as dg

from trinity_assets.catalog.catalog import Catalog
from trinity_assets.workers.specs import ProviderSpec

GRADING = "grading"
"""The pool of the steps that grade: each grades on every core, and a second one starts while the first still ends."""

GRADING_STEPS = 2


def provider_pool(provider: ProviderSpec) -> str:
    """The pool of the steps that ask ``provider``."""
    return f"llm_{provider.name}"


def apply_pool_limits(instance: dg.DagsterInstance, catalog: Catalog) -> None:
    """Write the limits of the catalog's pools into the instance; a pool without one has the instance's default."""
    for provider in catalog.providers.values():
        instance.event_log_storage.set_concurrency_slots(provider_pool(provider), provider.parallel_steps)
    instance.event_log_storage.set_concurrency_slots(GRADING, GRADING_STEPS)
