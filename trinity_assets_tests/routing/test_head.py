import numpy as np
import pytest
from safetensors.numpy import save

from trinity_assets.backbones.specs import FeatureSpec, WeightsIdentity
from trinity_assets.errors import ArtifactError
from trinity_assets.routing.evaluation import evaluate
from trinity_assets.routing.head import BestSingle, HeadRow, HeadSpec, best_single_on_train, read_heads, write_heads
from trinity_assets.routing.trainers.head import TrainingRecord
from trinity_assets.store.artifacts import ArtifactStore
from trinity_assets.workers.specs import Price
from trinity_assets_tests.routing.planted import WORKERS, features, table_of

FEATURES = FeatureSpec(
    weights=WeightsIdentity(source="tiny", sha256="0" * 64),
    hidden_size=4,
    transcript="raw",
    position=-2,
    dtype="float32",
    max_tokens=64,
    overlong="keep_tail",
)
SPEC = HeadSpec(
    router="starter",
    workers=(HeadRow(name="ada", digest="a"), HeadRow(name="bob", digest="b")),
    feature_spec=FEATURES,
    table_sha256="1" * 64,
    table_version="2" * 64,
    best_single_on_train=BestSingle(worker="ada", reward=0.5),
    trainers={
        name: TrainingRecord(settings={}, chosen={}, reward=0.6, history=(), evaluations=5)
        for name in ("ridge", "sep_cma_es")
    },
)
WEIGHTS = {"sep_cma_es": np.ones((2, 4)), "ridge": np.arange(8.0).reshape(2, 4)}


@pytest.fixture
def store(tmp_path) -> ArtifactStore:
    return ArtifactStore(str(tmp_path))


def test_heads_read_back_as_written(store):
    sha, _ = write_heads(store, WEIGHTS, SPEC)
    heads = read_heads(store, sha)
    assert (heads.spec, heads.sha256) == (SPEC, sha)
    assert list(heads.weights) == ["ridge", "sep_cma_es"]
    for name, weights in WEIGHTS.items():
        np.testing.assert_array_equal(heads.weights[name], weights)
        assert heads.weights[name].dtype == np.float32


def test_the_data_version_follows_weights_and_rows_only(store):
    sha, version = write_heads(store, WEIGHTS, SPEC)
    assert write_heads(store, dict(reversed(WEIGHTS.items())), SPEC) == (sha, version)
    renamed = SPEC.model_copy(update={"router": "other", "trainers": {}})
    assert write_heads(store, WEIGHTS, renamed)[1] == version
    assert write_heads(store, WEIGHTS | {"ridge": np.zeros((2, 4))}, SPEC)[1] != version
    swapped = SPEC.model_copy(update={"workers": SPEC.workers[::-1]})
    assert write_heads(store, WEIGHTS, swapped)[1] != version


def test_what_is_no_head_is_refused(store):
    with pytest.raises(ArtifactError, match="expected 2 rows of finite numbers"):
        write_heads(store, {"ridge": np.ones((3, 4))}, SPEC)
    with pytest.raises(ArtifactError, match="finite"):
        write_heads(store, {"ridge": np.full((2, 4), np.nan)}, SPEC)
    for data in (b"nonsense", save({"ridge": np.ones((2, 4), np.float32)})):
        with pytest.raises(ArtifactError, match="does not hold router heads"):
            read_heads(store, store.put(data))


def test_the_best_single_worker_is_chosen_on_train_and_ties_go_to_the_cheaper():
    table = table_of(np.tile([0.25, 0.75, 0.75], (50, 1)), WORKERS)
    assert best_single_on_train(table, WORKERS) == BestSingle(worker="bob", reward=0.75)
    table.loc[table["split"] == "train", "cost__cyd"] = 0.0
    assert best_single_on_train(table, WORKERS).worker == "cyd"
    prices = {"bob": Price(input_per_mtok=0.0, output_per_mtok=0.0), "cyd": Price(input_per_mtok=1, output_per_mtok=1)}
    assert best_single_on_train(table, WORKERS, prices).worker == "bob"
    assert best_single_on_train(table, WORKERS, {"bob": None}).worker == "cyd"
    assert evaluate(table, features(50, 4), {}, WORKERS, prices=prices, resamples=50).reference_worker == "bob"
    table.loc[table["split"] == "test", "score__ada"] = 1.0
    assert best_single_on_train(table, WORKERS).worker == "cyd"
