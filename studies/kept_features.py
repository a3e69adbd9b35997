"""Features of a study's questions, extracted once and kept in the user's cache: thousands of them take minutes."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import platformdirs

from trinity_assets.backbones.features import load_backbone
from trinity_assets.backbones.index import as_kept
from trinity_assets.backbones.specs import BackboneSpec, FeatureSpec
from trinity_assets.backbones.weights import feature_spec, resolve_weights
from trinity_assets.files import replaced_whole
from trinity_assets.spec import digest

logger = logging.getLogger(__name__)


def kept_features(
    backbone: BackboneSpec, questions: Sequence[str], cache: Path | None = None
) -> tuple[np.ndarray, FeatureSpec]:
    """The feature of each question, float32 (n, H), rounded as the graph keeps it, and the spec it was made under.

    ``cache`` is where they are kept, by default the user's cache directory; a file there is named by spec and
    questions.

    Raises:
        BackboneError: the backbone cannot be loaded, or refuses a question.
    """
    resolved = resolve_weights(backbone.weights)
    spec = feature_spec(backbone, resolved)
    name = digest([spec.digest, list(questions)])
    path = (cache or platformdirs.user_cache_path("trinity-assets") / "features") / f"{name}.npy"
    if not path.is_file():
        logger.info("reading %d questions with %s, once", len(questions), backbone.name)
        kept = as_kept(load_backbone(backbone, resolved).extract(questions))
        path.parent.mkdir(parents=True, exist_ok=True)
        with replaced_whole(path) as temporary, temporary.open("wb") as stream:
            np.save(stream, kept, allow_pickle=False)
    return np.load(path, allow_pickle=False).astype(np.float32), spec
