"""Reading a catalog: its files to one ``Catalog``, or every fault of all of them at once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from trinity_assets.benchmarks.specs import CHOICE_KEYS, FieldMapping, FileSource, ProceduralSource, SnapshotSpec
from trinity_assets.catalog.catalog import CATALOG_VARIABLE, DEFAULT_CATALOG, Benchmark, Catalog, Router
from trinity_assets.catalog.entries import (
    FILES,
    NAMED_BY_KEY,
    OPTIONAL,
    SINGLE,
    BenchmarkEntry,
    RecordedWorkerEntry,
    RouterEntry,
    WorkerEntry,
)
from trinity_assets.catalog.presets import GENERATED, PRESETS, Preset
from trinity_assets.catalog.reading import Document, Fault, FieldPath, read_document
from trinity_assets.catalog.recorded_workers import lacking, recorded_worker
from trinity_assets.errors import CatalogError
from trinity_assets.grading.specs import GradingSpec, RecordedGrader
from trinity_assets.recorded.specs import RECORDED, RecordedWorkerSpec, Worker, takes_scores
from trinity_assets.routing.specs import RouterTraining
from trinity_assets.spec import NOT_A_SLUG, SLUG_MAX_LENGTH, SLUG_PATTERN, worded
from trinity_assets.texts import counted
from trinity_assets.workers.operations import Operations
from trinity_assets.workers.specs import WorkerSpec

# Each cell is two assets; Dagster's lineage view and its automation tick stay usable up to about 330 assets.
MAX_CELLS = 150


def load_catalog(directory: Path) -> Catalog:
    """Read and check a catalog.

    Raises:
        CatalogError: its message lists every fault of every file.
    """
    loader = _Loader(directory)
    catalog = loader.load()
    if catalog is None:
        faults = sorted(loader.faults, key=lambda fault: (str(fault.file), fault.line or 0))
        lines = "\n".join(f"  {fault}" for fault in faults)
        raise CatalogError(f"the catalog {directory} has {counted(len(faults), 'fault')}:\n{lines}")
    return catalog


class _Loader:
    """One pass over a catalog that goes on after a fault, to find the others."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.faults: list[Fault] = []
        self._documents: dict[str, Document] = {}
        self._entries: dict[str, dict[str, Any]] = {}
        self._declared: dict[str, set[str]] = {}

    def load(self) -> Catalog | None:
        if not self._directory.is_dir():
            problem = f"there is no such directory; {CATALOG_VARIABLE} names the catalog, by default {DEFAULT_CATALOG}"
            self.faults.append(Fault(self._directory, (), None, problem))
            return None
        for file, sections in FILES.items():
            self._read_file(file, sections)
        for stranger in sorted(self._directory.glob("*.y*ml")):
            if stranger.name not in FILES:
                self.faults.append(Fault(stranger, (), None, f"unknown file; allowed: {', '.join(FILES)}"))
        self._check_references()
        if self.faults:
            return None
        catalog = self._compose()
        return None if self.faults else catalog

    def _read_file(self, file: str, sections: dict[str, Any]) -> None:
        if not (self._directory / file).exists() and sections.keys() <= OPTIONAL:
            document = Document(self._directory / file, {})
        else:
            document = read_document(self._directory / file)
        self._documents[file] = document
        self.faults += document.faults
        if not isinstance(document.data, dict):
            self._fault(file, (), f"expected a mapping with {_names(sections)}")
        data = document.data if isinstance(document.data, dict) else {}
        for unknown in data.keys() - sections.keys():
            self._fault(file, (str(unknown),), f"unknown section; allowed: {_names(sections)}")
        for section, entry_type in sections.items():
            entries = data.get(section)
            if section in SINGLE:
                self._entries[section] = self._single(file, section, entries, entry_type)
                continue
            if not isinstance(entries, dict) or not entries:
                nothing = entries is None or entries == {}
                if nothing and section in OPTIONAL and not document.faults:
                    self._declared[section] = set()
                elif not document.faults:
                    self._fault(file, (section,), "missing; expected a mapping of names to entries")
                entries = {}
            else:
                self._declared[section] = {str(name) for name in entries}
            self._entries[section] = self._validated(file, section, entries, entry_type)

    def _single(self, file: str, section: str, entry: Any, entry_type: Any) -> dict[str, Any]:
        """The section that is one entry, under its own name; nothing where it is not written."""
        if entry is None:
            return {}
        try:
            return {section: TypeAdapter(entry_type).validate_python(entry)}
        except ValidationError as error:
            for detail in error.errors(include_url=False):
                self._fault(file, (section, *_written_path(detail["loc"], entry)), worded(detail, entry_type))
            return {}

    def _validated(self, file: str, section: str, entries: dict[Any, Any], entry_type: Any) -> dict[str, Any]:
        valid: dict[str, Any] = {}
        for name, entry in entries.items():
            path = (section, str(name))
            if not isinstance(name, str) or not re.fullmatch(SLUG_PATTERN, name) or len(name) > SLUG_MAX_LENGTH:
                self._fault(file, path, NOT_A_SLUG)
                continue
            given = {"name": name, **entry} if section in NAMED_BY_KEY and isinstance(entry, dict) else entry
            try:
                valid[name] = TypeAdapter(entry_type).validate_python(given)
            except ValidationError as error:
                for detail in error.errors(include_url=False):
                    self._fault(file, (*path, *_written_path(detail["loc"], entry)), worded(detail, entry_type))
        return valid

    def _check_references(self) -> None:
        for name, worker in self._entries["workers"].items():
            if isinstance(worker, RecordedWorkerEntry):
                self._check_recorded(name, worker)
                continue
            self._check_name("workers.yaml", ("workers", name, "provider"), worker.provider, "providers")
            self._check_name("workers.yaml", ("workers", name, "prompt"), worker.prompt, "prompts")
        for name, pool in self._entries["pools"].items():
            for index, worker in enumerate(pool):
                self._check_name("workers.yaml", ("pools", name, index), worker, "workers")
                if worker in pool[:index]:
                    self._fault("workers.yaml", ("pools", name, index), f"{worker!r} is in this pool already")
        for name, router in self._entries["routers"].items():
            path = ("routers", name)
            pool = {name: self._entries["workers"].get(name) for name in self._entries["pools"].get(router.pool, ())}
            self._check_name("routers.yaml", (*path, "pool"), router.pool, "pools")
            self._check_name("routers.yaml", (*path, "backbone"), router.backbone, "backbones")
            for index, benchmark in enumerate(router.benchmarks):
                self._check_name("routers.yaml", (*path, "benchmarks", index), benchmark, "benchmarks")
                if benchmark in router.benchmarks[:index]:
                    self._fault("routers.yaml", (*path, "benchmarks", index), f"{benchmark!r} is listed already")
                elif benchmark in self._declared["benchmarks"] and (unrecorded := lacking(pool, benchmark)):
                    problem = (
                        f"{_names(unrecorded)} in pool {router.pool!r} cannot be asked and have no outcomes recorded "
                        f"on {benchmark!r}; add them in workers.yaml, or take them out of the pool"
                    )
                    self._fault("routers.yaml", (*path, "benchmarks", index), problem)
        for name, benchmark in self._entries["benchmarks"].items():
            self._check_benchmark(name, benchmark)

    def _check_name(self, file: str, path: FieldPath, name: str, section: str) -> None:
        declared = self._declared.get(section)  # None: that section has a fault of its own
        if declared is not None and name not in declared:
            self._fault(file, path, f"unknown {section[:-1]} {name!r}; declared: {_names(declared)}")

    def _check_recorded(self, name: str, worker: RecordedWorkerEntry) -> None:
        for benchmark, outcomes in worker.recorded.items():
            path = ("workers", name, RECORDED, benchmark)
            self._check_name("workers.yaml", path, benchmark, "benchmarks")
            for file in outcomes.paths:
                if not (self._directory / file).is_file():
                    self._fault("workers.yaml", (*path, "path"), f"no file {self._directory / file}")

    def _check_benchmark(self, name: str, entry: BenchmarkEntry) -> None:
        path = ("benchmarks", name)
        source = entry.source
        if isinstance(source, FileSource) and not source.is_url and not (self._directory / source.path).is_file():
            self._fault("benchmarks.yaml", (*path, "source", "path"), f"no file {self._directory / source.path}")
        if _preset(entry) is None and entry.grader is None:
            self._fault("benchmarks.yaml", path, f"no grader; give one, or a preset ({_names(PRESETS)})")

    def _check_gold(self, name: str, benchmark: Benchmark) -> None:
        """See that the fields give the grader what it needs; what lies in them, the snapshot sees."""
        fields, grader = benchmark.snapshot.fields, benchmark.grading.grader
        given = set(fields.gold) | (set(CHOICE_KEYS) if fields.choices else set())
        if not any(needed <= given for needed in grader.gold_keys):
            if set(CHOICE_KEYS) & grader.gold_keys[0] - given:
                advice = "name the options' fields: fields: {choices: [a, b, c]}, or the one field that holds them"
            else:
                keys = " or ".join(" and ".join(sorted(needed)) for needed in grader.gold_keys)
                advice = f"map {keys} to fields of the source, as in fields: {{gold: {{{keys.split()[0]}: solution}}}}"
            problem = f"the grader {grader.kind} cannot grade by {_names(given)}; {advice}"
            self._fault("benchmarks.yaml", ("benchmarks", name, "fields"), problem)

    def _check_graded(self, catalog: Catalog) -> None:
        """See that a benchmark without a grader has none to grade."""
        for worker, benchmark in catalog.cells:
            if benchmark.grading.grader.kind == RECORDED and not takes_scores(worker, benchmark.name):
                problem = f"recorded grades nothing, and {worker.name} has no recorded scores here; give a grader"
                self._fault("benchmarks.yaml", ("benchmarks", benchmark.name, "grader"), problem)

    def _compose(self) -> Catalog | None:
        entries = self._entries
        benchmarks: dict[str, Benchmark] = {}
        for name, entry in entries["benchmarks"].items():
            try:
                benchmarks[name] = _benchmark(name, entry)
            except ValidationError as error:
                for detail in error.errors(include_url=False):
                    self._fault("benchmarks.yaml", ("benchmarks", name, *detail["loc"]), worded(detail))
            else:
                self._check_gold(name, benchmarks[name])
        if self.faults:
            return None
        workers = {name: self._worker(name, entry, benchmarks) for name, entry in entries["workers"].items()}
        if self.faults:
            return None
        routers = {
            name: Router(
                name,
                entry.pool,
                tuple(_on(workers[worker], entry.benchmarks) for worker in entries["pools"][entry.pool]),
                tuple(benchmarks[benchmark] for benchmark in entry.benchmarks),
                entries["backbones"][entry.backbone],
                _training(entry),
            )
            for name, entry in entries["routers"].items()
        }
        operations = Operations(**{name: value for section in SINGLE for name, value in entries[section].items()})
        catalog = Catalog(
            self._directory, entries["providers"], workers, benchmarks, entries["backbones"], routers, operations
        )
        self._check_graded(catalog)
        if len(catalog.cells) > MAX_CELLS:
            problem = (
                f"{len(catalog.cells)} cells (worker x benchmark); allowed: {MAX_CELLS}, above which the lineage view "
                "and automation slow down. Split the catalog, or use smaller pools"
            )
            self._fault("routers.yaml", ("routers",), problem)
        return catalog

    def _worker(self, name: str, entry: WorkerEntry | RecordedWorkerEntry, benchmarks: dict[str, Benchmark]) -> Worker:
        if isinstance(entry, RecordedWorkerEntry):
            fields = {benchmark.name: benchmark.snapshot.fields for benchmark in benchmarks.values()}
            worker, problems = recorded_worker(name, entry, fields, self._directory)
            for benchmark, problem in problems.items():
                self._fault("workers.yaml", ("workers", name, RECORDED, benchmark), problem)
            return worker
        return WorkerSpec(
            name=name,
            provider=self._entries["providers"][entry.provider],
            model=entry.model,
            prompt_name=entry.prompt,
            prompt=self._entries["prompts"][entry.prompt],
            sampling=entry.sampling,
            price=entry.price,
            samples=entry.samples,
            timeout_s=entry.timeout_s,
            limits=entry.limits,
            budget_usd=entry.budget_usd,
        )

    def _fault(self, file: str, path: FieldPath, problem: str) -> None:
        self.faults.append(self._documents[file].fault(path, problem))


def _benchmark(name: str, entry: BenchmarkEntry) -> Benchmark:
    preset = _preset(entry)
    written = entry.fields.model_dump(exclude_unset=True) if entry.fields else {}
    if entry.category is not None:
        written["category"] = entry.category
    if isinstance(entry.grader, RecordedGrader) and not written.get("choices"):
        written.setdefault("gold", {})
    fields = FieldMapping.model_validate((preset.fields.model_dump() if preset else {}) | written)
    prompt = (preset.prompt if preset else "{question}") if entry.prompt is None else entry.prompt
    grader = entry.grader or (preset.grader if preset else None)
    snapshot = SnapshotSpec(
        name=name,
        source=entry.source,
        fields=fields,
        prompt=prompt,
        limit=entry.limit,
        seed=entry.seed,
        quarantine=entry.quarantine,
    )
    grading = GradingSpec.model_validate({"grader": grader, "settlement": entry.settlement})
    return Benchmark(name, snapshot, grading)


def _on(worker: Worker, benchmarks: Iterable[str]) -> Worker:
    return worker.on(benchmarks) if isinstance(worker, RecordedWorkerSpec) else worker


def _preset(entry: BenchmarkEntry) -> Preset | None:
    """The named preset, or that of generated tasks where their own scorer grades them."""
    if entry.preset:
        return PRESETS[entry.preset]
    own_scorer = entry.grader is None or entry.grader.kind == "procedural"
    return GENERATED if isinstance(entry.source, ProceduralSource) and own_scorer else None


def _training(entry: RouterEntry) -> RouterTraining:
    return RouterTraining(**{name: getattr(entry, name) for name in RouterTraining.model_fields})


def _written_path(location: tuple[str | int, ...], entry: Any) -> FieldPath:
    """A validation error's location as the person wrote it: without the union tags that pydantic puts between."""
    path: list[str | int] = []
    value = entry
    for position, part in enumerate(location):
        last = position == len(location) - 1
        if isinstance(value, dict) and (part in value or last):
            path.append(part)
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            path.append(part)
            value = value[part]
    return tuple(path)


def _names(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
