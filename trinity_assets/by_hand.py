"""Using a checkpoint by hand: choosing the worker for one question, and asking it."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from pathlib import Path

import numpy as np

from trinity_assets.backbones.features import load_backbone
from trinity_assets.backbones.specs import BackboneSpec
from trinity_assets.backbones.weights import ResolvedWeights, feature_spec, resolve_weights
from trinity_assets.catalog.catalog import Catalog
from trinity_assets.checkpoints.coordinator import Coordinator, Decision, check_feature_spec
from trinity_assets.checkpoints.directory import Checkpoint, load_checkpoint
from trinity_assets.errors import BackboneError, CheckpointError, RecordedError
from trinity_assets.home import ledger_url, trinity_home
from trinity_assets.recorded.specs import RECORDED, RecordedWorkerSpec
from trinity_assets.workers.collection import collect
from trinity_assets.workers.ledger import Ledger
from trinity_assets.workers.outcomes import Status

BY_HAND = "by_hand"
"""The benchmark under which the ledger keeps questions that were asked by hand."""


def choose_worker(
    catalog: Catalog, path: Path, question: str, offered: Collection[str] | None = None
) -> tuple[Checkpoint, Decision]:
    """Load the checkpoint at ``path`` and decide among ``offered``, with the feature extracted as in training.

    Raises:
        CheckpointError: the checkpoint is damaged, no backbone of the catalog gives the features it was made for, or it
            cannot choose among the workers that are offered.
    """
    checkpoint = load_checkpoint(path)

    def extract(questions: list[str]) -> np.ndarray:
        return load_backbone(*_matching_backbone(catalog, checkpoint)).extract(questions)

    return checkpoint, Coordinator(checkpoint, extract).route(question, offered)


def ask_worker(catalog: Catalog, checkpoint: Checkpoint, name: str, question: str) -> str:
    """The answer of the chosen worker; a question asked before is answered from the ledger.

    Raises:
        CheckpointError: the catalog's worker is not the one that the checkpoint was trained for.
        RecordedError: the worker's outcomes were recorded, so there is nobody to ask.
        IncompleteCellError: the worker could not be reached.
    """
    worker = catalog.workers.get(name)
    entry = next(entry for entry in checkpoint.manifest.pool if entry.name == name)
    if entry.provider.get("name") == RECORDED or isinstance(worker, RecordedWorkerSpec):
        raise RecordedError(
            f"{name} ({entry.model}) cannot be asked: its outcomes were read from files, which name no provider. "
            "Ask that model yourself, or declare it as a worker with a provider and train the router with that one"
        )
    if worker is None or worker.digest != entry.digest:
        raise CheckpointError(
            f"the catalog {catalog.directory} has no worker {name} as the checkpoint knew it (model {entry.model}); "
            "choose the catalog that it was trained with, or build the router again"
        )
    task_id = hashlib.sha256(question.encode()).hexdigest()
    with Ledger(ledger_url(trinity_home())) as ledger:
        collection = collect(worker, BY_HAND, {task_id: question}, ledger).require_complete()
    answer = collection.frame.iloc[0]
    return (
        str(answer["text"]) if answer["status"] == Status.ANSWERED else f"({answer['status']}) {answer['text'] or ''}"
    )


def _matching_backbone(catalog: Catalog, checkpoint: Checkpoint) -> tuple[BackboneSpec, ResolvedWeights]:
    refusals: list[str] = []
    for backbone in catalog.backbones.values():
        try:
            weights = resolve_weights(backbone.weights)
            check_feature_spec(checkpoint, feature_spec(backbone, weights))
        except (BackboneError, CheckpointError) as error:
            refusals.append(f"backbone {backbone.name}: {error}")
        else:
            return backbone, weights
    raise CheckpointError(
        f"no backbone of the catalog {catalog.directory} serves this checkpoint:\n  " + "\n  ".join(refusals)
    )
