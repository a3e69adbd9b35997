"""A good catalog becomes frozen specs; a bad one is told everything that is wrong with it, and where."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
import yaml

from trinity_assets.catalog.catalog import DEFAULT_CATALOG
from trinity_assets.catalog.entries import FILES, json_schema
from trinity_assets.catalog.loading import load_catalog
from trinity_assets.errors import CatalogError
from trinity_assets.workers.specs import WorkerSpec

DATA = DEFAULT_CATALOG.parent
LIVE = DATA / "live"

Edit = Callable[[str, str, str], None]


@pytest.fixture
def offline(tmp_path: Path) -> Path:
    """A copy of the embedded catalog to spoil."""
    return Path(shutil.copytree(DEFAULT_CATALOG, tmp_path / "offline"))


@pytest.fixture
def edit(offline: Path) -> Edit:
    """Replace text that must be there in a file of that copy."""

    def replace(file: str, old: str, new: str) -> None:
        path = offline / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))

    return replace


def faults(directory: Path) -> list[str]:
    with pytest.raises(CatalogError) as caught:
        load_catalog(directory)
    header, *lines = str(caught.value).splitlines()
    assert f"{directory} has {len(lines)} fault{'s' if len(lines) > 1 else ''}:" in header
    return [line.strip().removeprefix(f"{directory}/") for line in lines]


def test_the_embedded_catalog_is_the_default_and_holds_eight_cells() -> None:
    catalog = load_catalog(DEFAULT_CATALOG)
    assert [(worker.name, benchmark.name) for worker, benchmark in catalog.cells] == [
        (f"smollm2_{style}", benchmark)
        for style in ("direct", "terse", "steps", "fewshot")
        for benchmark in ("starter", "humaneval")
    ]
    assert [(backbone.name, benchmark.name) for backbone, benchmark in catalog.featured] == [
        ("smollm2", "starter"),
        ("smollm2", "humaneval"),
    ]
    assert catalog.key_variables == frozenset()
    router = catalog.routers["starter"]
    assert [worker.name for worker in router.workers][:2] == ["smollm2_direct", "smollm2_terse"]
    assert router.training.export == "ridge"
    assert set(router.training.trainers) == {"ridge", "sep_cma_es"}


def test_the_live_catalog_is_valid_without_keys_or_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    catalog = load_catalog(LIVE)
    workers = [worker for worker in catalog.routers["both"].workers if isinstance(worker, WorkerSpec)]
    assert len(workers) >= 5
    assert len({worker.provider.name for worker in workers}) >= 3
    assert "nvidia_nim" in {getattr(worker.provider, "route", None) for worker in workers}
    assert all(worker.price is not None for worker in workers)
    assert "NVIDIA_NIM_API_KEY" in catalog.key_variables
    assert set(catalog.routers) == {"humaneval", "gsm8k", "both"}
    assert catalog.backbones["qwen3_0_6b"].weights.model_dump()["repo"] == "Qwen/Qwen3-0.6B"


def test_faults_of_all_files_are_told_together(offline: Path, edit: Edit) -> None:
    edit("workers.yaml", "max_tokens:", "max_token:")
    edit("providers.yaml", "slots: 4", "slots: none")
    edit("routers.yaml", "pool: starter", "pool: nobody")
    edit("benchmarks.yaml", "path: starter.jsonl", "path: absent.jsonl")
    found = "\n".join(faults(offline))
    assert "workers.smollm2_direct.sampling.max_token: unknown field; allowed: temperature, max_tokens" in found
    assert "workers.smollm2_direct.sampling.max_tokens: missing" in found
    assert "providers.yaml:8: providers.local.slots: not a whole number" in found
    assert "routers.starter.pool: unknown pool 'nobody'; declared: starter" in found
    assert f"benchmarks.starter.source.path: no file {offline / 'absent.jsonl'}" in found


@pytest.mark.parametrize(
    ("file", "old", "new", "expected"),
    [
        (
            "workers.yaml",
            "starter: [smollm2_direct",
            "starter: [smollm3",
            "workers.yaml:{line}: pools.starter.0: unknown worker 'smollm3'",
        ),
        (
            "workers.yaml",
            "[smollm2_direct, ",
            "[smollm2_terse, ",
            "pools.starter.1: 'smollm2_terse' is in this pool already",
        ),
        ("workers.yaml", "pools:", "pool:", "pool: unknown section; allowed: pools, prompts, workers"),
        (
            "workers.yaml",
            "prompt: direct",
            "prompt: shout",
            "workers.smollm2_direct.prompt: unknown prompt 'shout'; declared:",
        ),
        ("workers.yaml", "provider: local", "provider: remote", "unknown provider 'remote'; declared: local"),
        (
            "providers.yaml",
            "local:",
            "Local-1:",
            "providers.Local-1: not a name; allowed: a-z, 0-9 and _, a letter first",
        ),
        (
            "providers.yaml",
            "kind: embedded",
            "kind: embeded",
            "providers.local: unknown kind 'embeded'; allowed: embedded, litellm",
        ),
        ("providers.yaml", "providers:", "providers: [", "providers.yaml:"),
        (
            "routers.yaml",
            "export: ridge",
            "export: forest",
            "export is 'forest', which is not among the trainers ['ridge', 'sep_cma_es']",
        ),
        ("routers.yaml", "ridge: {}", "forest: {}", "unknown trainer 'forest'; there are ridge, sep_cma_es"),
        ("routers.yaml", "backbone: smollm2", "backbone: smollm3", "unknown backbone 'smollm3'; declared: smollm2"),
        (
            "routers.yaml",
            "[starter, humaneval]",
            "[starter, mmlu]",
            "routers.starter.benchmarks.1: unknown benchmark 'mmlu'",
        ),
        (
            "routers.yaml",
            "[starter, humaneval]",
            "[starter, starter]",
            "routers.starter.benchmarks.1: 'starter' is listed already",
        ),
        ("routers.yaml", "test: 0.4", "test: 1.4", "routers.starter.split.test: it has to be less than 1"),
        ("benchmarks.yaml", "limit: 12", "limit: 0", "benchmarks.humaneval.limit: it has to be greater than 0"),
        (
            "benchmarks.yaml",
            "grader: {kind: exact}",
            "",
            "benchmarks.starter: no grader; give one, or a preset (arc, gsm8k, humaneval, math500, mbpp, mmlu)",
        ),
        ("benchmarks.yaml", '"{question}"', '"{question"', "benchmarks.starter.prompt: not a template"),
        (
            "backbones.yaml",
            "dtype: float32",
            "dtype: float8",
            "backbones.smollm2.dtype: unknown value 'float8'; allowed: float32 or bfloat16",
        ),
    ],
)
def test_each_fault_says_where_and_what_is_allowed(
    offline: Path, edit: Edit, file: str, old: str, new: str, expected: str
) -> None:
    edit(file, old, new)
    lines = (offline / file).read_text().splitlines()
    line = next((number for number, text in enumerate(lines, start=1) if new and new in text), 0)
    assert expected.format(line=line) in "\n".join(faults(offline))


def test_a_name_declared_twice_is_a_fault_with_both_lines(offline: Path) -> None:
    path = offline / "backbones.yaml"
    first = next(n for n, line in enumerate(path.read_text().splitlines(), start=1) if line == "  smollm2:")
    path.write_text(path.read_text() + "  smollm2: {}\n")
    last = len(path.read_text().splitlines())
    assert f"backbones.yaml:{last}: backbones.smollm2: declared twice, here and on line {first}" in "\n".join(
        faults(offline)
    )


def test_a_missing_file_an_unknown_one_and_a_missing_directory_are_faults(offline: Path, tmp_path: Path) -> None:
    (offline / "routers.yaml").rename(offline / "router.yaml")
    found = faults(offline)
    assert "routers.yaml: there is no such file" in found
    assert any(line.startswith("router.yaml: unknown file; allowed: providers.yaml") for line in found)
    assert "TRINITY_CATALOG names the catalog" in faults(tmp_path / "nowhere")[0]


def test_more_cells_than_the_graph_can_carry_are_refused(offline: Path) -> None:
    workers = yaml.safe_load((offline / "workers.yaml").read_text())
    entry = workers["workers"]["smollm2_direct"]
    workers["workers"] = {f"w{n}": entry for n in range(76)}
    workers["pools"]["starter"] = list(workers["workers"])
    (offline / "workers.yaml").write_text(yaml.safe_dump(workers, sort_keys=False))
    assert "152 cells (worker x benchmark); allowed: 150" in faults(offline)[0]
    workers["pools"]["starter"] = list(workers["workers"])[:75]
    (offline / "workers.yaml").write_text(yaml.safe_dump(workers, sort_keys=False))
    assert len(load_catalog(offline).cells) == 150


def test_what_is_written_beside_a_preset_wins(offline: Path, edit: Edit) -> None:
    edit("benchmarks.yaml", "preset: humaneval", 'preset: humaneval\n    prompt: "Only code:\\n{question}"')
    benchmark = load_catalog(offline).benchmarks["humaneval"]
    assert benchmark.snapshot.prompt == "Only code:\n{question}"
    assert benchmark.grading.grader.kind == "python_function"
    assert benchmark.snapshot.fields.id == "task_id"


def test_digests_follow_what_changes_an_answer_and_nothing_else(offline: Path, edit: Edit) -> None:
    before = load_catalog(offline).workers["smollm2_direct"].digest
    edit("providers.yaml", "slots: 4", "slots: 2")
    assert load_catalog(offline).workers["smollm2_direct"].digest == before
    edit("workers.yaml", "max_tokens: ", "max_tokens: 1")
    assert load_catalog(offline).workers["smollm2_direct"].digest != before


@pytest.mark.parametrize("file", list(FILES))
def test_the_committed_schemas_are_those_of_the_models_and_accept_both_catalogs(file: str) -> None:
    schema = json_schema(file)
    assert json.loads((DATA / "schema" / f"{Path(file).stem}.json").read_text()) == schema
    written = [catalog / file for catalog in (DEFAULT_CATALOG, LIVE) if (catalog / file).exists()]
    assert LIVE / file in written
    for path in written:
        jsonschema.validate(yaml.safe_load(path.read_text()), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"surprise": {}}, schema)


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        (
            "{source: {kind: file, path: tasks.jsonl}, grader: {kind: number}, fields: {gold: {value: answer}}}",
            "the grader number cannot grade by value; map answer to fields of the source",
        ),
        (
            "{source: {kind: file, path: tasks.jsonl}, grader: {kind: choice}}",
            "the grader choice cannot grade by answer; name the options' fields: fields: {choices: [a, b, c]}",
        ),
        (
            "{source: {kind: file, path: tasks.jsonl}, grader: {kind: python_function}}",
            "the grader python_function cannot grade by answer; map entry_point and test or tests to fields",
        ),
    ],
)
def test_gold_that_a_grader_cannot_use_is_told_before_anything_is_asked(
    tmp_path: Path, entry: str, problem: str
) -> None:
    directory = shutil.copytree(DEFAULT_CATALOG, tmp_path / "catalog")
    (directory / "tasks.jsonl").write_text('{"id": "a", "question": "b?", "answer": "c"}\n')
    with (directory / "benchmarks.yaml").open("a") as file:
        file.write(f"\n  mine: {entry}\n")
    with pytest.raises(CatalogError, match=re.escape(problem)):
        load_catalog(directory)


SOURCE = "source: {kind: file, path: starter.jsonl}"
EXACT = f"{SOURCE}, grader: {{kind: exact}}"


@pytest.mark.parametrize(
    ("section", "entry", "path", "problem"),
    [
        (
            "benchmarks",
            f"{{{SOURCE}, grader: number}}",
            ".grader",
            "expected a mapping such as {kind: number}; kinds: exact, number, python_function, choice, math, pro",
        ),
        (
            "benchmarks",
            f"{{{SOURCE}, grader: {{kind: exakt}}}}",
            ".grader",
            "unknown kind 'exakt'; allowed: exact, number, python_function, choice, math, procedural",
        ),
        (
            "benchmarks",
            "{source: {path: starter.jsonl}, grader: {kind: exact}}",
            ".source",
            "kind is missing; allowed: file, package, huggingface, procedural",
        ),
        (
            "benchmarks",
            f"{{{EXACT}, settlement: missing}}",
            ".settlement",
            "expected a mapping with no_answer, truncated, refused, context_exceeded",
        ),
        (
            "benchmarks",
            f"{{{EXACT}, fields: {{gold: solution}}}}",
            ".fields.gold",
            "expected a mapping, as in {answer: solution}",
        ),
        ("benchmarks", "{grader: {kind: exact}}", ".source", "missing"),
        ("benchmarks", f"{{{EXACT}, limit: yes}}", ".limit", "a boolean where a number belongs"),
        ("benchmarks", f"{{{EXACT}, limit: 1.5}}", ".limit", "not a whole number"),
        ("benchmarks", f"{{{EXACT}, prompt: 5}}", ".prompt", "not a text; put it in quotes if it is meant as one"),
        (
            "benchmarks",
            f"{{{SOURCE}, grader: {{kind: python_function, allow_unsandboxed: perhaps}}, preset: humaneval}}",
            ".grader.allow_unsandboxed",
            "neither true nor false",
        ),
        (
            "benchmarks",
            f"{{{EXACT}, quarantine: [{{id: a, reason: wrong, date: 2026-13-01}}]}}",
            ".quarantine.0.date",
            "not a date; write YYYY-MM-DD",
        ),
        ("benchmarks", f"{{{EXACT}, quarantine: a}}", ".quarantine", "expected a list, as in [first, second]"),
        (
            "benchmarks",
            "{source: {kind: file, path: starter.jsonl, sha256: ABC}, grader: {kind: exact}}",
            ".source.sha256",
            "not a sha256: 64 lower-case hex digits",
        ),
        (
            "benchmarks",
            "{source: {kind: package, package: '', path: a.jsonl}, grader: {kind: exact}}",
            ".source.package",
            "empty",
        ),
        (
            "benchmarks",
            "{source: {kind: huggingface, repo: a/b, split: test, revision: main}, grader: {kind: exact}}",
            ".source.revision",
            "main is a branch, and a branch moves; give a commit or a tag",
        ),
        (
            "backbones",
            "{weights: {kind: huggingface, repo: a/b, revision: HEAD}}",
            ".weights.revision",
            "HEAD is a branch, and a branch moves; give a commit or a tag",
        ),
        ("backbones", "{weights: gguf}", ".weights", "expected a mapping such as {kind: package_gguf}; kinds: "),
        ("providers", "text", "", "expected a mapping such as {kind: embedded}; kinds: embedded, litellm"),
        (
            "routers",
            "{pool: Starter, benchmarks: [starter], backbone: smollm2, trainers: {ridge: {}}, export: ridge}",
            ".pool",
            "not a name; allowed: a-z, 0-9 and _, a letter first, at most 48",
        ),
        *(
            (
                "benchmarks",
                f"{{{EXACT}, prompt: '{prompt}'}}",
                ".prompt",
                "every placeholder is {question} or {<name of a row field>}, with nothing else in it",
            )
            for prompt in ("{question:d}", "{question!z}", "{question!r:>{x}}", "{question:>999999999999}", "{0}")
        ),
        (
            "benchmarks",
            f"{{{EXACT}, prompt: ''}}",
            ".prompt",
            "the template shows the worker no field; {question} is missing",
        ),
    ],
)
def test_a_fault_is_worded_for_the_person_who_wrote_it(
    offline: Path, section: str, entry: str, path: str, problem: str
) -> None:
    file = offline / f"{section}.yaml"
    file.write_text(file.read_text().rstrip() + f"\n  mine: {entry}\n")
    (found,) = faults(offline)
    line = len(file.read_text().splitlines())
    assert found.startswith(f"{section}.yaml:{line}: {section}.mine{path}: {problem}")


def test_a_boolean_in_a_number_is_told_once(offline: Path, edit: Edit) -> None:
    edit("routers.yaml", "test: 0.4", "test: 0.4, folds: true")
    (found,) = faults(offline)
    assert found.endswith("routers.starter.split.folds: a boolean where a number belongs")


def test_a_file_that_cannot_be_read_makes_no_false_references(offline: Path) -> None:
    (offline / "workers.yaml").write_text("workers: [\n")
    (found,) = faults(offline)
    assert found.startswith("workers.yaml:2: not YAML: ")
