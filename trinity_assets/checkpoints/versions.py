"""The format of checkpoints that this release writes and reads."""

from typing import Final

MANIFEST_FORMAT: Final = "trinity-assets-checkpoint"
MANIFEST_VERSION: Final = 1
"""Raise it when a manifest's fields change their names or meaning."""
