"""The catalog: every declared worker, benchmark, backbone and router as resolved, frozen specs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from trinity_assets.backbones.specs import BackboneSpec
from trinity_assets.benchmarks.specs import SnapshotSpec
from trinity_assets.grading.specs import GradingSpec
from trinity_assets.recorded.specs import Worker
from trinity_assets.routing.specs import RouterTraining
from trinity_assets.workers.operations import Operations
from trinity_assets.workers.specs import ProviderSpec, WorkerSpec

CATALOG_VARIABLE = "TRINITY_CATALOG"
DEFAULT_CATALOG = Path(__file__).parents[2] / "data" / "offline"


@dataclass(frozen=True)
class Benchmark:
    """A benchmark's snapshot and grading, under one name."""

    name: str
    snapshot: SnapshotSpec
    grading: GradingSpec


@dataclass(frozen=True)
class Router:
    """A router with its references resolved.

    ``workers`` is the pool's members in their order; a recorded one has only the outcomes on this router's benchmarks.
    """

    name: str
    pool: str
    workers: tuple[Worker, ...]
    benchmarks: tuple[Benchmark, ...]
    backbone: BackboneSpec
    training: RouterTraining


@dataclass(frozen=True)
class Catalog:
    """Everything declared in one directory."""

    directory: Path
    providers: Mapping[str, ProviderSpec]
    workers: Mapping[str, Worker]
    benchmarks: Mapping[str, Benchmark]
    backbones: Mapping[str, BackboneSpec]
    routers: Mapping[str, Router]
    operations: Operations

    @cached_property
    def cells(self) -> list[tuple[Worker, Benchmark]]:
        """Every (worker, benchmark) that some router learns from, by worker in catalog order, then by benchmark."""
        pairs = {(w.name, b.name) for r in self.routers.values() for w in r.workers for b in r.benchmarks}
        return [
            (worker, benchmark)
            for worker in self.workers.values()
            for benchmark in self.benchmarks.values()
            if (worker.name, benchmark.name) in pairs
        ]

    @cached_property
    def asked_cells(self) -> list[tuple[WorkerSpec, Benchmark]]:
        """The cells of workers that are asked."""
        return [(worker, benchmark) for worker, benchmark in self.cells if isinstance(worker, WorkerSpec)]

    @cached_property
    def featured(self) -> list[tuple[BackboneSpec, Benchmark]]:
        """Every (backbone, benchmark) that some router learns from, in catalog order."""
        pairs = {(r.backbone.name, b.name) for r in self.routers.values() for b in r.benchmarks}
        return [
            (backbone, benchmark)
            for backbone in self.backbones.values()
            for benchmark in self.benchmarks.values()
            if (backbone.name, benchmark.name) in pairs
        ]

    @cached_property
    def learned(self) -> list[Benchmark]:
        """The benchmarks that some router learns from, in catalog order."""
        names = {benchmark.name for router in self.routers.values() for benchmark in router.benchmarks}
        return [benchmark for name, benchmark in self.benchmarks.items() if name in names]

    @cached_property
    def key_variables(self) -> frozenset[str]:
        """The environment variables that hold the providers' keys."""
        names = (getattr(provider, "key_env", None) for provider in self.providers.values())
        return frozenset(name for name in names if name)


def catalog_directory() -> Path:
    """The directory named by ``TRINITY_CATALOG``, else the embedded catalog of a checkout."""
    chosen = os.environ.get(CATALOG_VARIABLE)
    return Path(chosen).expanduser() if chosen else DEFAULT_CATALOG
