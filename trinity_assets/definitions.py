"""The one entry point: the catalog that ``TRINITY_CATALOG`` names, as a Dagster asset graph."""

from __future__ import annotations

import dagster as dg

from trinity_assets.catalog.catalog import Catalog, catalog_directory
from trinity_assets.catalog.loading import load_catalog
from trinity_assets.defs.answers import answers_assets
from trinity_assets.defs.backbones import backbone_assets
from trinity_assets.defs.benchmarks import contamination_assets, snapshot_assets
from trinity_assets.defs.checkpoints import checkpoint_assets
from trinity_assets.defs.console import console
from trinity_assets.defs.drift import drift_assets
from trinity_assets.defs.evaluations import evaluation_assets
from trinity_assets.defs.execution import executor
from trinity_assets.defs.features import features_assets
from trinity_assets.defs.heads import head_assets
from trinity_assets.defs.resources import default_resources
from trinity_assets.defs.schedules import schedules
from trinity_assets.defs.sentinels import sentinel_assets
from trinity_assets.defs.solves import solves_assets
from trinity_assets.defs.tables import table_assets

EVERYTHING = "everything"


def build_defs(catalog: Catalog) -> dg.Definitions:
    """The whole graph of ``catalog``, floor by floor."""
    return dg.Definitions(
        assets=[
            *snapshot_assets(catalog),
            *contamination_assets(catalog),
            *backbone_assets(catalog),
            *features_assets(catalog),
            *answers_assets(catalog),
            *solves_assets(catalog),
            *table_assets(catalog),
            *head_assets(catalog),
            *evaluation_assets(catalog),
            *checkpoint_assets(catalog),
            *sentinel_assets(catalog),
            *drift_assets(catalog),
        ],
        jobs=[
            dg.define_asset_job(
                EVERYTHING,
                selection=dg.AssetSelection.all(),
                description="Every asset of the catalog, whether it needs building or not.",
            )
        ],
        schedules=schedules(catalog),
        resources=default_resources(),
        executor=executor(catalog),
        loggers={"console": console},
    )


@dg.definitions
def defs() -> dg.Definitions:
    """What Dagster loads."""
    return build_defs(load_catalog(catalog_directory()))


def everything_job() -> dg.JobDefinition:
    """The job of all assets, for runs that are not started by the daemon."""
    return defs().resolve_job_def(EVERYTHING)
