import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save

from trinity_assets.checkpoints.directory import HEAD_FILE, MANIFEST, load_checkpoint, write_checkpoint
from trinity_assets.checkpoints.manifest import Policy, Rows
from trinity_assets.errors import CheckpointError
from trinity_assets.routing.completeness import Dropped
from trinity_assets.spec import digest
from trinity_assets_tests.checkpoints.conftest import HEAD, POOL


def rewrite(path: Path, **changes: Any) -> None:
    declared = json.loads((path / MANIFEST).read_text())
    (path / MANIFEST).write_text(json.dumps(declared | changes))


def replace_head(path: Path, tensors: dict[str, np.ndarray]) -> None:
    data = save(tensors)
    (path / HEAD_FILE).write_bytes(data)
    rewrite(path, files={HEAD_FILE: hashlib.sha256(data).hexdigest()})


def test_round_trip(checkpoint, fields):
    loaded = load_checkpoint(checkpoint)
    np.testing.assert_array_equal(loaded.head, HEAD)
    assert loaded.manifest.model_dump(include=set(type(fields).model_fields)) == fields.model_dump()
    assert loaded.manifest.workers == list(POOL)
    assert sorted(file.name for file in checkpoint.iterdir()) == [HEAD_FILE, MANIFEST]
    assert sorted(checkpoint.parent.iterdir()) == [checkpoint]


def test_the_same_content_is_the_same_path_and_is_not_written_again(checkpoint, fields):
    before = (checkpoint / MANIFEST).stat().st_mtime_ns
    elsewhere = fields.model_copy(update={"environment": {"numpy": "3"}})
    assert write_checkpoint(checkpoint.parent, elsewhere, HEAD) == checkpoint
    assert (checkpoint / MANIFEST).stat().st_mtime_ns == before
    assert write_checkpoint(checkpoint.parent, fields, 2 * HEAD) != checkpoint


def test_a_damaged_checkpoint_is_written_again(checkpoint, fields):
    (checkpoint / HEAD_FILE).write_bytes(b"")
    assert write_checkpoint(checkpoint.parent, fields, HEAD) == checkpoint
    np.testing.assert_array_equal(load_checkpoint(checkpoint).head, HEAD)


def test_a_failed_write_leaves_nothing(tmp_path, fields, monkeypatch):
    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "rename", full)
    with pytest.raises(CheckpointError, match="nothing was published"):
        write_checkpoint(tmp_path, fields, HEAD)
    assert list(tmp_path.iterdir()) == []


CORRUPTIONS = {
    "no manifest": (lambda path: (path / MANIFEST).unlink(), "holds no manifest.json"),
    "manifest cut short": (lambda path: os.truncate(path / MANIFEST, 40), "is not JSON"),
    "manifest is a list": (lambda path: (path / MANIFEST).write_text("[]"), "is not the manifest of a trinity-assets"),
    "another format": (lambda path: rewrite(path, format="other"), "is not the manifest of a trinity-assets"),
    "a later version": (lambda path: rewrite(path, version=2), "has version 2, this release reads version 1"),
    "a field too many": (lambda path: rewrite(path, extra=1), "extra"),
    "an unknown policy": (lambda path: rewrite(path, policy={"kind": "oracle"}), "policy"),
    "constant without worker": (lambda path: rewrite(path, policy={"kind": "constant"}), "constant policy names its"),
    "a constant stranger": (
        lambda path: rewrite(path, policy={"kind": "constant", "worker": "eve"}),
        "not in the pool",
    ),
    "a dropped worker in the pool": (
        lambda path: rewrite(path, dropped=[{"name": "bob", "reason": "answers on quiz were never complete"}]),
        r"the workers \['bob'\] are both in the pool and dropped",
    ),
    "rows against pool": (
        lambda path: rewrite(path, rows={"workers": 2, "roles": 1}),
        "rows.workers is 2, the pool has 3",
    ),
    "offsets against pool": (lambda path: rewrite(path, offsets=[0.0]), "1 offsets for 3 workers"),
    "no head file": (lambda path: (path / HEAD_FILE).unlink(), "is missing though the manifest lists it"),
    "head unlisted": (lambda path: rewrite(path, files={MANIFEST: "0" * 64}), "is damaged"),
    "one bit": (lambda path: (path / HEAD_FILE).write_bytes(save({"head": HEAD + 1})), "head.safetensors is damaged"),
    "absolute path": (lambda path: rewrite(path, files={"/etc/hostname": "0" * 64}), "leaves the directory"),
    "parent path": (lambda path: rewrite(path, files={"../x": "0" * 64}), "leaves the directory"),
    "backslash parent": (lambda path: rewrite(path, files={"a\\..\\..\\x": "0" * 64}), "leaves the directory"),
    "another key": (lambda path: replace_head(path, {"weights": HEAD}), r"holds tensors \['weights'\]"),
    "two keys": (lambda path: replace_head(path, {"head": HEAD, "more": HEAD}), r"\['head', 'more'\]"),
    "too few rows": (lambda path: replace_head(path, {"head": HEAD[:2]}), r"shape \(2, 4\); 3 workers, 0 roles"),
    "another width": (lambda path: replace_head(path, {"head": HEAD[:, :3]}), "features of width 4"),
    "float64": (lambda path: replace_head(path, {"head": HEAD.astype(np.float64)}), "is float64, expected float32"),
    "not finite": (lambda path: replace_head(path, {"head": HEAD * np.inf}), "not finite"),
}


@pytest.mark.parametrize("name", CORRUPTIONS)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_each_corruption_is_its_own_error(checkpoint, name):
    corrupt, message = CORRUPTIONS[name]
    corrupt(checkpoint)
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(checkpoint)


def test_a_link_out_of_the_directory_is_refused(checkpoint, tmp_path):
    (tmp_path / "outside").write_bytes((checkpoint / HEAD_FILE).read_bytes())
    (checkpoint / HEAD_FILE).unlink()
    (checkpoint / HEAD_FILE).symlink_to(tmp_path / "outside")
    with pytest.raises(CheckpointError, match="leaves the directory"):
        load_checkpoint(checkpoint)


def test_a_head_file_that_is_no_safetensors(checkpoint):
    (checkpoint / HEAD_FILE).write_bytes(b"nonsense")
    rewrite(checkpoint, files={HEAD_FILE: hashlib.sha256(b"nonsense").hexdigest()})
    with pytest.raises(CheckpointError, match="is not a safetensors file"):
        load_checkpoint(checkpoint)


def test_a_manifest_without_the_head(checkpoint):
    (checkpoint / "notes").write_bytes(b"")
    rewrite(checkpoint, files={"notes": hashlib.sha256(b"").hexdigest()})
    with pytest.raises(CheckpointError, match=r"does not list head\.safetensors"):
        load_checkpoint(checkpoint)


def test_nothing_invalid_is_written(tmp_path, fields):
    with pytest.raises(CheckpointError, match="need"):
        write_checkpoint(tmp_path, fields, HEAD[:2])
    with pytest.raises(CheckpointError, match=r"need \(5, 4\)"):
        write_checkpoint(tmp_path, fields.model_copy(update={"rows": Rows(workers=3, roles=2)}), HEAD)
    assert list(tmp_path.iterdir()) == []


def test_who_was_dropped_is_read_back_and_counts(tmp_path, fields):
    gone = Dropped(name="eve", reason="answers on quiz cover 30 of 40 tasks")
    with_eve = write_checkpoint(tmp_path, fields, HEAD)
    without_eve = write_checkpoint(tmp_path, fields.model_copy(update={"dropped": (gone,)}), HEAD)
    assert json.loads((without_eve / MANIFEST).read_text())["dropped"] == [gone.model_dump()]
    assert load_checkpoint(without_eve).manifest.dropped == (gone,)
    versions = {load_checkpoint(path).manifest.data_version for path in (with_eve, without_eve)}
    assert len(versions) == 2
    assert with_eve != without_eve


def test_a_manifest_of_before_workers_dropped_gates_and_warm_starts_reads_back_and_is_the_same(checkpoint):
    before = load_checkpoint(checkpoint).manifest
    declared = json.loads((checkpoint / MANIFEST).read_text())
    assert (declared.pop("dropped"), declared.pop("gate")) == ([], None)
    assert declared["trainer"].pop("started_from") is None
    (checkpoint / MANIFEST).write_text(json.dumps(declared))
    manifest = load_checkpoint(checkpoint).manifest
    assert (manifest.dropped, manifest.gate) == ((), None)
    # What it said of itself then, when there were no such fields.
    later = dict.fromkeys(("created_at", "environment", "dropped", "gate"), True)
    undigested: dict[str, Any] = {**later, "trainer": {"started_from"}}
    assert manifest.digest == before.digest == digest(manifest.model_dump(mode="json", exclude=undigested))
    undigested["data"] = True
    assert manifest.data_version == digest(manifest.model_dump(mode="json", exclude=undigested))


def test_what_a_search_started_from_tells_checkpoints_apart_and_is_not_decided_on(tmp_path, fields):
    warm = fields.trainer.model_copy(update={"started_from": "6" * 64})
    declared = [fields.model_copy(update={"trainer": trainer}) for trainer in (warm, fields.trainer)]
    both = [write_checkpoint(tmp_path, one, HEAD) for one in declared]
    assert both[0] != both[1]
    manifests = [load_checkpoint(path).manifest for path in both]
    assert [manifest.trainer.started_from for manifest in manifests] == ["6" * 64, None]
    assert manifests[0].data_version == manifests[1].data_version


def test_a_manifest_that_publishes_what_the_gate_did_not_is_refused(checkpoint):
    gate = {
        "trainer": "ridge", "passed": False, "reason": "tied", "n": 9, "accuracy": 0.5, "reference_accuracy": 0.5,
        "difference": 0.0, "low": -0.1, "high": 0.1, "p": 1.0, "saving": None,
    }  # fmt: skip
    rewrite(checkpoint, gate=gate)
    with pytest.raises(CheckpointError, match="the policy is head though its head did not pass the gate"):
        load_checkpoint(checkpoint)
    rewrite(checkpoint, gate=gate, policy={"kind": "constant", "worker": "ada", "margin": None})
    assert load_checkpoint(checkpoint).manifest.policy.worker == "ada"


def test_the_policy_names_a_worker_exactly_when_constant():
    with pytest.raises(ValueError, match="head policy names none"):
        Policy(kind="head", worker="ada")
