import numpy as np
import pytest

from trinity_assets.backbones.specs import FeatureSpec
from trinity_assets.checkpoints.coordinator import Coordinator, Decision, check_feature_spec
from trinity_assets.checkpoints.directory import Checkpoint, load_checkpoint, write_checkpoint
from trinity_assets.checkpoints.manifest import Policy, Rows
from trinity_assets.errors import CheckpointError
from trinity_assets_tests.checkpoints.conftest import HEAD, POOL, entry

FEATURES = {"to ada": [3, 1, 0, 0], "to bob": [0, 2, 1.5, 0], "to cyd": [0, 0, 1, 9], "tie": [1, 1, 0, 0]}


def extract(questions: list[str]) -> np.ndarray:
    return np.array([FEATURES[question] for question in questions], dtype=np.float32)


def coordinator(tmp_path, fields, head=HEAD, **changes) -> Coordinator:
    return Coordinator(load_checkpoint(write_checkpoint(tmp_path, fields.model_copy(update=changes), head)), extract)


def test_it_routes_by_the_head(tmp_path, fields):
    routed = coordinator(tmp_path, fields)
    assert routed.route("to ada") == Decision("ada", {"ada": 3.0, "bob": 1.0, "cyd": 0.0}, 2.0, "head")
    assert routed.route("to bob").margin == 0.5
    assert [decision.worker for decision in routed.route_many(list(FEATURES))] == ["ada", "bob", "cyd", "ada"]
    assert routed.route("tie").margin == 0


def test_permuting_the_pool_permutes_the_head_and_changes_no_decision(tmp_path, fields):
    order = [2, 0, 1]
    pool = tuple(entry(POOL[i]) for i in order)
    permuted = coordinator(tmp_path, fields, HEAD[order], pool=pool)
    for question in ("to ada", "to bob", "to cyd"):
        decision, original = permuted.route(question), coordinator(tmp_path, fields).route(question)
        assert decision == original


def test_offsets_are_added_and_role_rows_are_not_workers(tmp_path, fields):
    assert coordinator(tmp_path, fields, offsets=(0.0, 2.5, 0.0)).route("to ada").worker == "bob"
    with_roles = np.vstack([HEAD, np.full((2, 4), 99, np.float32)])
    assert coordinator(tmp_path, fields, with_roles, rows=Rows(workers=3, roles=2)).route("to cyd").worker == "cyd"


def test_a_constant_policy_computes_no_feature(tmp_path, fields):
    constant = coordinator(tmp_path, fields, policy=Policy(kind="constant", worker="bob"))
    assert constant.route("a question without a feature") == Decision("bob", {}, None, "constant")


def test_the_head_decides_among_the_workers_that_are_offered(tmp_path, fields):
    routed = coordinator(tmp_path, fields)
    assert routed.route("to ada", ["cyd", "bob"]) == Decision("bob", {"bob": 1.0, "cyd": 0.0}, 1.0, "head")
    assert routed.route("to bob", {"ada", "cyd"}).worker == "cyd"
    assert routed.route("to bob", ["cyd", "cyd"]) == Decision("cyd", {"cyd": 1.5}, None, "head")
    assert routed.route_many(list(FEATURES), POOL) == routed.route_many(list(FEATURES))
    offset = coordinator(tmp_path, fields, offsets=(0.0, 0.0, 5.0))
    assert offset.route("to ada", ["ada", "bob"]).worker == "ada"


@pytest.mark.parametrize(
    ("offered", "complaint"),
    [
        (["bob", "dee"], "'dee' is not in the pool of starter; offer some of ada, bob, cyd"),
        ([], "nobody is offered of the pool of starter; offer some of ada, bob, cyd"),
    ],
)
def test_an_offer_that_is_none_is_refused(tmp_path, fields, offered, complaint):
    with pytest.raises(CheckpointError, match=complaint):
        coordinator(tmp_path, fields).route("to ada", offered)


def test_a_constant_policy_has_no_second_choice(tmp_path, fields):
    constant = coordinator(tmp_path, fields, policy=Policy(kind="constant", worker="bob"))
    assert constant.route("q", ["bob", "cyd"]).worker == "bob"
    with pytest.raises(CheckpointError, match="is to ask bob whatever the question, which is not offered"):
        constant.route("q", ["ada", "cyd"])


@pytest.mark.parametrize("features", [np.ones((1, 3)), np.full((1, 4), np.nan), np.ones((2, 4))])
def test_features_of_another_backbone_are_refused(tmp_path, fields, features):
    checkpoint = load_checkpoint(write_checkpoint(tmp_path, fields, HEAD))
    with pytest.raises(CheckpointError, match="serve it with the backbone it was trained for"):
        Coordinator(checkpoint, lambda _: features).route("q")


def test_another_feature_spec_is_refused_by_its_fields(checkpoint):
    loaded: Checkpoint = load_checkpoint(checkpoint)
    spec: FeatureSpec = loaded.manifest.feature_spec
    check_feature_spec(loaded, spec)
    with pytest.raises(CheckpointError, match="dtype: float32 here, bfloat16 there; max_tokens: 64 here, 32 there"):
        check_feature_spec(loaded, spec.model_copy(update={"dtype": "bfloat16", "max_tokens": 32}))
