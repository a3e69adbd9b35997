"""A small catalog for tests of the whole graph: three workers of one scripted provider, two benchmarks, one router.

What is asked and answered is in ``scripted_models``. A :class:`Site` is such a catalog with the provider that it names
and a home of its own; its ``build`` runs in this process and says what was built in which wave, and what the provider
was asked for it::

    with built_site(tmp_path_factory.getbasetemp(), tmp_path / "site") as site:
        site.catalog.edit("workers.yaml", "Be brief.", "Be very brief.")
        built = site.build()
        assert built.waves[0] == {"answers/terse/sums", "answers/terse/capitals"}
        assert built.requests == {"m_terse": 36}
"""

from __future__ import annotations

import contextlib
import functools
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import dagster as dg
import pandas as pd
import pytest

from trinity_assets.catalog.loading import load_catalog
from trinity_assets.definitions import EVERYTHING, build_defs
from trinity_assets.defs.build import BuildResult, Execute, Executed, build, select
from trinity_assets.defs.lineage import DATA_VERSION_TAG, artifact_sha256, newest_materialization, recorded_metadata
from trinity_assets.defs.rebaselining import answers_to_ask, rebaseline
from trinity_assets.defs.runs import NEW_EPOCH_TAG
from trinity_assets.home import INSTANCE_CONFIG, ledger_url, store_url
from trinity_assets.routing import router_report
from trinity_assets.store.artifacts import ArtifactStore
from trinity_assets.store.tables import read_table
from trinity_assets.workers.asking import PROBE_MESSAGES
from trinity_assets_tests.backbones.tiny_models import save_model_directory
from trinity_assets_tests.graph.scripted_models import TASKS, WORKERS, Task, small_server
from trinity_assets_tests.scripted_server import ScriptedServer


@dataclass(frozen=True)
class SmallCatalog:
    """The five files in ``directory``, which a test may edit."""

    directory: Path

    def edit(self, file: str, old: str, new: str) -> None:
        """Replace the one place in ``file`` that reads ``old``."""
        path = self.directory / file
        text = path.read_text()
        assert text.count(old) == 1, f"{file} holds {old!r} {text.count(old)} times"
        path.write_text(text.replace(old, new))

    def write_tasks(self, tasks: Iterable[Task]) -> None:
        """Write ``<benchmark>.jsonl`` of the tasks' benchmarks anew."""
        rows: dict[str, list[str]] = {}
        for task in tasks:
            row = {"id": task.id, "question": task.question, "answer": task.answer, "category": task.category}
            rows.setdefault(task.benchmark, []).append(json.dumps(row))
        for benchmark, lines in rows.items():
            (self.directory / f"{benchmark}.jsonl").write_text("\n".join(lines) + "\n")


_FILES = {
    "providers.yaml": """\
providers:
  scripted:
    kind: litellm
    route: openai
    api_base: {url}
    limits: {{concurrency: 4}}
    timeout_s: 20
""",
    "workers.yaml": """\
workers:
  direct:
    provider: scripted
    model: m_direct
    prompt: plain
    sampling: {{max_tokens: 32}}
    price: {{input_per_mtok: 1.0, output_per_mtok: 2.0}}
  terse:
    provider: scripted
    model: m_terse
    prompt: terse
    sampling: {{max_tokens: 8}}
    price: {{input_per_mtok: 0.5, output_per_mtok: 0.5}}
  long:
    provider: scripted
    model: m_long
    prompt: steps
    sampling: {{max_tokens: 64}}
    price: {{input_per_mtok: 3.0, output_per_mtok: 9.0}}
prompts:
  plain:
    user: "{{prompt}}"
  terse:
    system: Be brief.
    user: "{{prompt}}"
  steps:
    user: "Think step by step. {{prompt}}"
pools:
  all: [direct, terse, long]
""",
    "benchmarks.yaml": """\
benchmarks:
  sums:
    source: {{kind: file, path: sums.jsonl}}
    prompt: "{{question}} Give a number."
    grader: {{kind: exact}}
    settlement: {{truncated: unsolved}}
    category: category
    limit: 24
  capitals:
    source: {{kind: file, path: capitals.jsonl}}
    grader: {{kind: exact}}
    settlement: {{refused: unsolved}}
    category: category
""",
    "backbones.yaml": """\
backbones:
  tiny:
    weights: {{kind: directory, path: {backbone}}}
    position: -2
    max_tokens: 64
""",
    "routers.yaml": """\
routers:
  small:
    pool: all
    benchmarks: [sums, capitals]
    backbone: tiny
    trainers:
      ridge: {{}}
      sep_cma_es: {{generations: 5}}
    export: ridge
    split: {{seed: 0, test: 0.4}}
""",
}


def write_small_catalog(directory: Path, url: str, backbone: Path) -> SmallCatalog:
    """Write the catalog: the provider is at ``url``, the backbone's weights lie in ``backbone``."""
    directory.mkdir(parents=True)
    for file, text in _FILES.items():
        (directory / file).write_text(text.format(url=url, backbone=backbone))
    catalog = SmallCatalog(directory)
    catalog.write_tasks(task for tasks in TASKS.values() for task in tasks)
    return catalog


@dataclass(frozen=True)
class Built:
    """What one build did: the assets of each wave, the requests per model, how it ended."""

    waves: list[set[str]]
    requests: dict[str, int]
    result: BuildResult

    @property
    def built(self) -> set[str]:
        """Everything that was materialized."""
        return names(self.result.built)

    @property
    def messages(self) -> Mapping[str, str]:
        """The failed steps' messages by asset."""
        return self.result.reasons


@dataclass
class Site:
    """A catalog, the provider that it names, and the home that it is built in. ``variables`` is their environment.

    ``draws`` is whether its builds draw the router's pictures, which take a quarter of the time.
    """

    directory: Path
    catalog: SmallCatalog
    server: ScriptedServer
    draws: bool = False
    _asked: Counter[str] = field(default_factory=Counter)

    @property
    def home(self) -> Path:
        """What ``TRINITY_HOME`` names."""
        return self.directory / "home"

    @property
    def variables(self) -> dict[str, str]:
        """The environment of every process that works on this site."""
        return {
            "TRINITY_HOME": str(self.home),
            "TRINITY_CATALOG": str(self.catalog.directory),
            "DAGSTER_HOME": str(self.home / "dagster"),
        }

    @property
    def store(self) -> ArtifactStore:
        """The home's artifact store."""
        return ArtifactStore(store_url(self.home))

    @property
    def ledger_url(self) -> str:
        """The home's ledger."""
        return ledger_url(self.home)

    def definitions(self) -> dg.Definitions:
        """The graph of the catalog as it is written now, with this home's resources."""
        with self.environment():
            return build_defs(load_catalog(self.catalog.directory))

    def instance(self) -> dg.DagsterInstance:
        """The home's Dagster instance, to be used in a ``with`` block."""
        return dg.DagsterInstance.from_config(str(self.home / "dagster"))

    @contextlib.contextmanager
    def environment(self) -> Iterator[None]:
        """Within the block ``variables`` are set."""
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self.variables.items():
                patch.setenv(name, value)
            yield

    def build(self, selection: str | None = None) -> Built:
        """``trinity-assets build`` with every step in this process."""
        definitions = self.definitions()
        waves: list[set[str]] = []
        with self.instance() as instance, self._drawing():
            result = build(
                definitions,
                instance,
                select(definitions, selection),
                execute_here(definitions),
                lambda wave: waves.append(names(state.key for state in wave)),
            )
        return Built(waves, self.new_requests(), result)

    def rebaseline(self, selection: str | None = None, *, name: str = "once more") -> Built:
        """``trinity-assets rebaseline`` with every step in this process."""
        definitions = self.definitions()
        waves: list[set[str]] = []
        with self.instance() as instance, self._drawing():
            result = rebaseline(
                definitions,
                instance,
                answers_to_ask(load_catalog(self.catalog.directory), definitions, selection),
                execute_here(definitions, {NEW_EPOCH_TAG: name}),
                lambda wave: waves.append(names(state.key for state in wave)),
            )
        return Built(waves, self.new_requests(), result)

    @contextlib.contextmanager
    def _drawing(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            if not self.draws:
                patch.setattr(router_report, "router_pictures", lambda *_: [])
            yield

    def new_requests(self) -> dict[str, int]:
        """How many questions each model was asked since this was last looked at; models that had none are left out.

        A probe is no question: whether one is made depends on how many calls have failed in a row.
        """
        asked = Counter(one.body["model"] for one in self.server.received() if one.messages != PROBE_MESSAGES)
        new = asked - self._asked
        self._asked = asked
        return dict(new)

    def metadata(self, asset: str, name: str) -> str:
        """What the newest materialization of ``asset`` says under ``name``."""
        with self.instance() as instance:
            value = recorded_metadata(instance, dg.AssetKey(asset.split("/")), name)
        assert value is not None
        return value

    def checkpoint_path(self) -> Path:
        """Where the router's checkpoint lies."""
        return Path(self.metadata(CHECKPOINT, "path"))

    def data_version(self, name: str) -> str:
        """The data version that an asset has now."""
        return self.data_versions([name])[name]

    def data_versions(self, assets: Iterable[str]) -> dict[str, str]:
        """The data version that each of ``assets`` has now."""
        found = {}
        with self.instance() as instance:
            for name in assets:
                materialization = newest_materialization(instance, dg.AssetKey(name.split("/")))
                assert materialization is not None and materialization.tags
                found[name] = materialization.tags[DATA_VERSION_TAG]
        return found

    def sha256(self, name: str) -> str:
        """The sha of an asset's newest artifact."""
        with self.instance() as instance:
            found = artifact_sha256(instance, dg.AssetKey(name.split("/")))
        assert found is not None
        return found

    def scores(self, worker: str, benchmark: str) -> dict[str, float | None]:
        """The score of each task of a cell; None is missing."""
        frame = read_table(self.store, "solves", self.sha256(f"solves/{worker}/{benchmark}")).frame
        return {
            task_id: None if pd.isna(score) else score
            for task_id, score in zip(frame["task_id"], frame["score"], strict=True)
        }


@contextlib.contextmanager
def empty_site(shared: Path, directory: Path, *, delay_s: float = 0.0) -> Iterator[Site]:
    """A site in ``directory`` where nothing is built; within the block its provider runs and its environment is set.

    ``shared`` is where what all sites of a test session share is made once: the backbone's weights.
    """
    with _site(shared, directory, delay_s) as site:
        (site.home / "dagster").mkdir(parents=True)
        (site.home / "dagster" / "dagster.yaml").symlink_to(INSTANCE_CONFIG)
        yield site


@contextlib.contextmanager
def built_site(shared: Path, directory: Path) -> Iterator[Site]:
    """A site where everything is built, by another provider at another URL; its own was not asked yet.

    Its home is a copy of one that is built once for ``shared``.
    """
    home, messages = _built_home(shared)
    assert not messages, messages
    with _site(shared, directory) as site:
        shutil.copytree(home, site.home, symlinks=True)
        yield site


@contextlib.contextmanager
def _site(shared: Path, directory: Path, delay_s: float = 0.0) -> Iterator[Site]:
    backbone = _backbone(shared)
    with small_server(delay_s) as server:
        site = Site(directory, write_small_catalog(directory / "catalog", server.url, backbone), server)
        with site.environment():
            yield site


@functools.cache
def _backbone(shared: Path) -> Path:
    return save_model_directory(shared / "small_backbone")


@functools.cache
def _built_home(shared: Path) -> tuple[Path, Mapping[str, str]]:
    """A home where everything is built, and the messages of steps that failed at it; tried once."""
    with empty_site(shared, Path(tempfile.mkdtemp(dir=shared)) / "small_site") as site:
        site.draws = True
        return site.home, site.build().messages


def execute_here(definitions: dg.Definitions, tags: Mapping[str, str] | None = None) -> Execute:
    """Runs steps one after another in this process; ``tags`` are those of the runs."""
    job = definitions.resolve_job_def(EVERYTHING)

    def execute(instance: dg.DagsterInstance, keys: Sequence[dg.AssetKey]) -> Executed:
        result = job.execute_in_process(
            instance=instance, asset_selection=list(keys), raise_on_error=False, tags=dict(tags or {})
        )
        messages: dict[str, str] = {}
        for event in result.filter_events(lambda event: event.is_step_failure):
            failure = event.step_failure_data
            said = failure.user_failure_data.description if failure.user_failure_data else None
            messages[str(event.step_key).replace("__", "/")] = said or str(failure.error)
        made = [event.asset_key for event in result.all_events if event.is_step_materialization]
        return Executed(frozenset(key for key in made if key), messages)

    return execute


def names(keys: Iterable[dg.AssetKey]) -> set[str]:
    """Asset keys as text."""
    return {key.to_user_string() for key in keys}


def cell_names(floor: str, workers: Iterable[str] = WORKERS, benchmarks: Iterable[str] = TASKS) -> set[str]:
    """The names of the cells' assets on one floor."""
    return {f"{floor}/{worker}/{benchmark}" for worker in workers for benchmark in benchmarks}


ROUTER = [f"routers/small/{asset}" for asset in ("table", "head", "evaluation", "checkpoint")]
TABLE, HEAD, EVALUATION, CHECKPOINT = ROUTER
"""The router's assets, from the bottom up."""

SNAPSHOTS = {f"benchmarks/{benchmark}/{table}" for benchmark in TASKS for table in ("tasks", "gold")}
CONTAMINATION = "benchmarks/contamination"
DRIFT = "workers/drift"
FEATURES = {f"features/tiny/{benchmark}" for benchmark in TASKS}
ALL_ASSETS = {
    *SNAPSHOTS,
    CONTAMINATION,
    "backbones/tiny",
    *FEATURES,
    *cell_names("answers"),
    *cell_names("solves"),
    *ROUTER,
    DRIFT,
}

IN_TURN = [{TABLE}, {HEAD}, {EVALUATION}, {CHECKPOINT}]
"""The router's assets one after another: each exists, so each waits to see whether the one before has changed."""

WITH_DRIFT = [{TABLE, DRIFT}, *IN_TURN[1:]]
"""The same after a change in the cells, which are compared with themselves at the same time."""
