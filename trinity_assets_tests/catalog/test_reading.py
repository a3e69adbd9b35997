"""What PyYAML throws away is kept: lines and repeated keys, also where mappings are merged."""

from __future__ import annotations

from pathlib import Path

import pytest

from trinity_assets.catalog.reading import Document, read_document

MERGED = """\
base: &base
  model: small
  sampling: {temperature: 0}
extra: &extra
  status: canary
worker:
  <<: *base
  model: large
other:
  model: large
  <<: [*base, *extra]
"""


@pytest.fixture
def document(tmp_path: Path) -> Document:
    (tmp_path / "workers.yaml").write_text(MERGED)
    return read_document(tmp_path / "workers.yaml")


def test_a_key_may_override_a_merged_one(document: Document) -> None:
    assert document.faults == []
    assert document.data["worker"] == {"model": "large", "sampling": {"temperature": 0}}
    assert document.data["other"] == {"model": "large", "sampling": {"temperature": 0}, "status": "canary"}


def test_a_merged_value_has_the_line_where_it_is_written(document: Document) -> None:
    lines = [document.lines["worker", key] for key in ("model", "sampling")]
    assert lines == [8, 3]
    assert document.lines["other", "status"] == 5
    assert document.fault(("worker", "sampling", "temperature"), "no").line == 3


def test_a_key_repeated_beside_a_merge_is_still_a_fault(tmp_path: Path) -> None:
    (tmp_path / "workers.yaml").write_text(MERGED + "  model: huge\n")
    faults = [str(fault) for fault in read_document(tmp_path / "workers.yaml").faults]
    assert faults == [
        f"{tmp_path / 'workers.yaml'}:12: other.model: declared twice, here and on line 10; rename or remove one"
    ]


def test_an_empty_file_is_an_empty_mapping(tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").write_text("# nothing\n")
    assert read_document(tmp_path / "empty.yaml") == Document(tmp_path / "empty.yaml", {})


@pytest.mark.parametrize("value", ["2026-13-01", "!!int many", "!!timestamp soon", "0x_"])
def test_what_only_looks_like_another_type_stays_text(tmp_path: Path, value: str) -> None:
    (tmp_path / "odd.yaml").write_text(f"a: &a {value}\nb: *a\n")
    document = read_document(tmp_path / "odd.yaml")
    assert document.faults == []
    assert document.data == dict.fromkeys("ab", value.rpartition(" ")[2])


def test_what_is_nested_within_itself_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "odd.yaml").write_text("a: &a [*a]\n")
    (fault,) = read_document(tmp_path / "odd.yaml").faults
    assert fault.problem == "nested too deeply, or within itself"
