"""A fitted router as a directory: its heads, its evaluation, and a report for people, as HTML and as Markdown."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Collection, Mapping
from pathlib import Path

from safetensors.numpy import save

from trinity_assets.backbones.specs import FeatureSpec
from trinity_assets.errors import TrainingError
from trinity_assets.routing.fitting import FittedRouter, publication
from trinity_assets.routing.head import METADATA_KEY, BestSingle
from trinity_assets.routing.headroom_report import headroom_markdown
from trinity_assets.routing.pool_admission import admissions_markdown
from trinity_assets.routing.router_report import RouterReport, router_pictures
from trinity_assets.routing.specs import SplitSpec
from trinity_assets.routing.trainers.head import TrainingRecord
from trinity_assets.spec import Sha256, Spec, canonical_json
from trinity_assets.texts import in_markdown

HEADS_FILE = "heads.safetensors"
EVALUATION_FILE = "evaluation.json"
MARKDOWN_FILE = "report.md"
HTML_FILE = "report.html"

KIND = "fitted_heads"


class Origin(Spec):
    """What a router was fitted on: the sha256 of the files of the table and the prices, and where features are from.

    ``features_sha256`` is of a file of features, ``feature_spec`` says how a backbone extracted them; one is None.
    """

    table_sha256: Sha256
    prices_sha256: Sha256 | None = None
    features_sha256: Sha256 | None = None
    feature_spec: FeatureSpec | None = None


class FittedHeadsSpec(Spec):
    """What stands in the metadata of the heads: the workers of their rows, and how they came about.

    ``split`` says how tasks were held out. ``always`` is the worker that is to be asked whatever the question, None
    where the head ``export`` decides. ``learnt`` are the marks (``seen_tasks``) of all tasks that they and the heads
    they started from have learnt from; None in files of before they were kept.
    """

    workers: tuple[str, ...]
    export: str
    always: str | None
    best_single_on_train: BestSingle
    split: SplitSpec
    origin: Origin
    trainers: dict[str, TrainingRecord]
    learnt: tuple[str, ...] | None = None


def require_new(directory: Path) -> None:
    """See that a router can be written to ``directory``, before it is trained.

    Raises:
        TrainingError: there is something already, or it cannot be made.
    """
    try:
        taken = any(directory.iterdir()) if directory.is_dir() else directory.exists() or directory.is_symlink()
        absolute = directory.absolute()
        nearest = next((parent for parent in absolute.parents if parent.exists()), absolute)
        writable = nearest.is_dir() and os.access(nearest, os.W_OK)
    except (OSError, ValueError) as error:  # a name too long, or one that holds a null character
        raise TrainingError(f"cannot write to {directory}: {error}") from error
    if taken:
        raise TrainingError(f"{directory} exists already; give another directory, or remove it first")
    if not writable:
        raise TrainingError(f"cannot write to {directory}: {nearest} is no directory that you may write to")


def write_fitted(fitted: FittedRouter, origin: Origin, learnt: Collection[str], directory: Path) -> None:
    """Write heads, evaluation, and the report as ``report.html`` and as ``report.md`` with its pictures.

    The new ``directory`` appears under its name complete or not at all. Equal routers are equal bytes, pictures aside.

    Args:
        learnt: the marks of all tasks that the heads, and those that they started from, have learnt from.

    Raises:
        TrainingError: there is something already, or it cannot be written.
    """
    require_new(directory)
    report = _report(fitted, origin)
    pictures = {f"{picture.name}.png": picture.png for picture in report.pictures}
    evaluation = json.dumps(fitted.evaluation.model_dump(mode="json"), indent=2, allow_nan=False)
    files = {
        HEADS_FILE: _heads(fitted, origin, learnt),
        EVALUATION_FILE: f"{evaluation}\n".encode(),
        MARKDOWN_FILE: report.markdown({picture.name: f"{picture.name}.png" for picture in report.pictures}).encode(),
        HTML_FILE: report.html().encode(),
    }
    _write_whole(directory, files | pictures)


def _heads(fitted: FittedRouter, origin: Origin, learnt: Collection[str]) -> bytes:
    spec = FittedHeadsSpec(
        workers=fitted.workers,
        export=fitted.export,
        always=fitted.constant,
        best_single_on_train=fitted.best_single_on_train,
        split=fitted.split,
        origin=origin,
        trainers={name: head.record for name, head in fitted.heads.items()},
        learnt=tuple(sorted(learnt)),
    )
    metadata = canonical_json({"kind": KIND, "spec": spec.model_dump(mode="json")})
    return save({name: head.weights for name, head in fitted.heads.items()}, metadata={METADATA_KEY: metadata})


def _report(fitted: FittedRouter, origin: Origin) -> RouterReport:
    records = {name: head.record for name, head in fitted.heads.items()}
    facts = {name: f"`{value}`" for name, value in origin.model_dump(mode="json").items() if isinstance(value, str)}
    if origin.feature_spec is not None:
        facts["features"] = f"`{canonical_json(origin.feature_spec.model_dump(mode='json'))}`"
    return RouterReport(
        title="A router, as it was fitted",
        published="**Would be published:** "
        + in_markdown(publication(fitted.evaluation, fitted.export, records[fitted.export])),
        headroom=headroom_markdown(fitted.headroom) + admissions_markdown(fitted.admissions),
        evaluation=fitted.evaluation,
        pictures=router_pictures(fitted.evaluation, fitted.table, records, fitted.best_single_on_train),
        facts=facts,
    )


def _write_whole(directory: Path, files: Mapping[str, bytes]) -> None:
    temporary = directory.with_name(f".{directory.name}.{uuid.uuid4().hex}.tmp")
    try:
        temporary.mkdir(parents=True)
        for name, data in files.items():
            (temporary / name).write_bytes(data)
        temporary.rename(directory)  # also over an empty one
    except OSError as error:
        raise TrainingError(f"cannot write {directory}: {error}; nothing was written") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
