"""What the process that steps are forked from imports: everything slow that some step needs, once, not per step."""

import importlib
import os

# Without it, importing litellm asks the network for a price list.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

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
