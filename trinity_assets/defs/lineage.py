"""How one step reads what another wrote, and how it reports what it wrote itself.

A materialization names its artifact's sha256; a reader takes exactly that object, re-hashed by the store, and records
every sha that it read. Nothing is passed between steps in memory or by path.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import dagster as dg

from trinity_assets.defs.orphans import end_with_run
from trinity_assets.errors import ArtifactError, TrinityError

ARTIFACT = "artifact_sha256"
INPUTS = "inputs"
DATA_VERSION_TAG = "dagster/data_version"


def artifact_sha256(instance: dg.DagsterInstance, key: dg.AssetKey) -> str | None:
    """The sha of the newest artifact of ``key``, None when it was never materialized."""
    return recorded_metadata(instance, key, ARTIFACT)


def recorded_metadata(instance: dg.DagsterInstance, key: dg.AssetKey, name: str) -> str | None:
    """One metadata value of the newest materialization of ``key`` as text, None when there is none."""
    materialization = newest_materialization(instance, key)
    value = materialization.metadata.get(name) if materialization else None
    return str(value.value) if value is not None else None


def newest_materialization(instance: dg.DagsterInstance, key: dg.AssetKey) -> dg.AssetMaterialization | None:
    """What the newest run that made ``key`` recorded of it."""
    event = instance.get_latest_materialization_event(key)
    return event.asset_materialization if event else None


class Upstream:
    """The artifacts that a step reads, and the record of their shas."""

    def __init__(self, context: dg.AssetExecutionContext) -> None:
        self._instance = context.instance
        self._data_versions: dict[str, str] = {}
        self.inputs: dict[str, str] = {}

    def sha256(self, key: dg.AssetKey) -> str:
        """The sha of the newest artifact of ``key``, recorded as read.

        Raises:
            ArtifactError: it was never materialized.
        """
        name = key.to_user_string()
        if name not in self.inputs:
            materialization = newest_materialization(self._instance, key)
            if materialization is None:
                raise ArtifactError(f"{name} was never materialized; run `trinity-assets build` or build it first")
            self.inputs[name] = str(materialization.metadata[ARTIFACT].value)
            self._data_versions[name] = (materialization.tags or {})[DATA_VERSION_TAG]
        return self.inputs[name]

    def data_version(self, key: dg.AssetKey) -> str:
        """The data version of that same artifact."""
        self.sha256(key)
        return self._data_versions[key.to_user_string()]


def materialized(
    key: dg.AssetKey,
    artifact: str,
    data_version: str,
    inputs: Mapping[str, str],
    metadata: Mapping[str, Any],
    checks: Sequence[dg.AssetCheckResult] = (),
) -> dg.MaterializeResult[Any]:
    """The result of a step: the artifact's sha, the data version of what is decided on below, metadata and checks."""
    # Six significant digits: enough for anyone who reads them, and a cost of a fraction of a cent stays one.
    shown = {name: float(f"{value:.6g}") if isinstance(value, float) else value for name, value in metadata.items()}
    return dg.MaterializeResult(
        asset_key=key,
        data_version=dg.DataVersion(data_version),
        check_results=checks,
        metadata={**shown, ARTIFACT: artifact, **({INPUTS: dict(inputs)} if inputs else {})},
    )


@contextlib.contextmanager
def step() -> Iterator[None]:
    """What every step runs in.

    It ends with its run, and an error that a user can act on becomes a failure with just that message, which no retry
    would mend.
    """
    end_with_run()
    try:
        yield
    except TrinityError as error:
        raise dg.Failure(description=str(error), allow_retries=False) from error
