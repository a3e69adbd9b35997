"""Which heads may be published for which pool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from trinity_assets.checkpoints.export import manifest_fields
from trinity_assets.checkpoints.manifest import ManifestFields
from trinity_assets.errors import CheckpointError
from trinity_assets.routing.completeness import Dropped
from trinity_assets.routing.crossfit import Learn
from trinity_assets.routing.evaluation import evaluate
from trinity_assets.routing.head import BestSingle, HeadRow, Heads, HeadSpec
from trinity_assets.routing.table import ROUTER_TABLE, router_table_schema
from trinity_assets.routing.trainers.head import TrainingRecord
from trinity_assets.store.artifacts import ArtifactStore
from trinity_assets.store.tables import write_table
from trinity_assets.workers.specs import LiteLLMProvider, PromptStyle, Sampling, WorkerSpec
from trinity_assets_tests.checkpoints.conftest import FEATURE_SPEC
from trinity_assets_tests.routing.planted import features, learners_of, planted_scores, table_of


def worker(name: str, max_tokens: int = 32) -> WorkerSpec:
    return WorkerSpec(
        name=name,
        provider=LiteLLMProvider(name="scripted", route="openai"),
        model=f"m_{name}",
        prompt_name="plain",
        prompt=PromptStyle(),
        sampling=Sampling(max_tokens=max_tokens),
    )


POOL = [worker("ada"), worker("bob"), worker("cyd")]
(RIDGE,) = learners_of("ridge")
WITHOUT_BOB = (Dropped(name="bob", reason="answers on quiz were never complete"),)


def fields(
    store: ArtifactStore,
    pool: Sequence[WorkerSpec],
    trained: Sequence[WorkerSpec],
    dropped: Sequence[Dropped] = (),
    learn: Learn = RIDGE,
) -> ManifestFields:
    """What is exported for ``pool`` of a head that was trained for ``trained``, less the workers that it says.

    The gate sees the heads of ``learn``.
    """
    names = [one.name for one in trained]
    drawn = features(120, 4)
    table = table_of(planted_scores(drawn, len(names))[0], names)
    weights = {"ridge": np.zeros((len(names), 4), np.float32)}
    evaluation = evaluate(table, drawn, weights, names, dropped=dropped, recipes={"ridge": [learn]}, resamples=200)
    spec = HeadSpec(
        router="starter",
        workers=tuple(HeadRow(name=one.name, digest=one.digest) for one in trained),
        feature_spec=FEATURE_SPEC,
        table_sha256=write_table(store, ROUTER_TABLE, table, router_table_schema(names), {}),
        table_version="2" * 64,
        best_single_on_train=BestSingle(worker=names[0], reward=0.5),
        trainers={"ridge": TrainingRecord(settings={}, chosen={}, reward=0.6, history=(), evaluations=5)},
    )
    return manifest_fields(store, pool, "ridge", Heads(weights, spec, "3" * 64), evaluation)


@pytest.fixture
def store(tmp_path) -> ArtifactStore:
    return ArtifactStore(str(tmp_path))


def test_the_pool_is_what_the_head_was_trained_for_and_the_others_are_named(store):
    whole = fields(store, POOL, POOL)
    assert [(entry.name, entry.digest) for entry in whole.pool] == [(one.name, one.digest) for one in POOL]
    assert whole.dropped == ()
    part = fields(store, POOL, [POOL[0], POOL[2]], WITHOUT_BOB)
    assert [entry.name for entry in part.pool] == ["ada", "cyd"]
    assert (part.rows.workers, part.offsets, part.dropped) == (2, (0.0, 0.0), WITHOUT_BOB)


def test_a_head_that_passes_the_gate_is_published_and_no_other(store):
    passed = fields(store, POOL, POOL)
    assert passed.policy.kind == "head" and passed.gate is not None and passed.gate.passed
    assert (passed.gate.low or 0) > 0 and passed.evaluation.accuracy != passed.evaluation.baselines["best_single"]
    refused = fields(store, POOL, POOL, learn=learners_of("constant")[0])
    assert refused.gate is not None and not refused.gate.passed
    assert refused.policy.kind == "constant" and refused.policy.worker in ("ada", "bob", "cyd")
    # What it says of itself is what is published: the best single worker, which ties with itself.
    assert refused.evaluation.accuracy == refused.evaluation.baselines["best_single"]
    assert (refused.evaluation.verdict, refused.evaluation.interval) == ("tie", (0.0, 0.0))


@pytest.mark.parametrize(
    ("pool", "trained", "dropped"),
    [
        ([worker("ada", 64), *POOL[1:]], POOL, ()),
        ([worker("ada", 64), *POOL[1:]], [POOL[0], POOL[2]], WITHOUT_BOB),
        (POOL, [POOL[0], POOL[2]], ()),  # one is missing, and nothing says why
        (POOL, [POOL[2], POOL[0]], WITHOUT_BOB),
        ([POOL[0], POOL[2]], [POOL[0], POOL[2]], WITHOUT_BOB),  # the dropped one has left the pool
    ],
)
def test_a_head_of_another_pool_is_refused(store, pool: Any, trained: Any, dropped: Any):
    with pytest.raises(CheckpointError, match=r"the head of starter was trained for .*; build the router's table and"):
        fields(store, pool, trained, dropped)
