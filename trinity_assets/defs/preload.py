"""What the process that steps are forked from imports: everything slow that some step needs, once, not per step."""

import importlib

from trinity_assets.workers.litellm_library import keep_litellm_offline

keep_litellm_offline()

for module in (
    "pandas",
    "pyarrow.parquet",
    "sqlalchemy",
    "torch",
    "transformers",
    "litellm",
    "cma",
    "matplotlib.figure",
    "trinity_assets.definitions",
):
    importlib.import_module(module)
