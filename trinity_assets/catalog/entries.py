"""What a person writes under each section of the files, and where each section is.

References are names here (``provider: local``); ``catalog.py`` resolves them into the specs of the packages. Entries
that need no resolving are those specs themselves.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, Discriminator, Field, Tag, TypeAdapter

from trinity_assets.backbones.specs import BackboneSpec
from trinity_assets.benchmarks.specs import FieldMapping, Quarantined, TaskSource
from trinity_assets.catalog.presets import PRESETS
from trinity_assets.grading.specs import GraderSpec, Settlement
from trinity_assets.recorded.specs import RECORDED, RecordedOutcomes
from trinity_assets.routing.specs import RouterTraining
from trinity_assets.spec import SLUG_MAX_LENGTH, SLUG_PATTERN, Slug, Spec
from trinity_assets.workers.operations import Operations, RunBudget, Schedule, SentinelSpec
from trinity_assets.workers.specs import Price, PromptStyle, ProviderSpec, Sampling, WorkerLimits


class WorkerEntry(Spec):
    """A worker: a provider, its model id, a prompt style and sampling parameters."""

    provider: Slug
    model: str
    prompt: Slug
    sampling: Sampling
    price: Price | None = None
    samples: int = Field(default=1, gt=0)
    timeout_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    limits: WorkerLimits = WorkerLimits()
    budget_usd: float | None = Field(default=None, gt=0, allow_inf_nan=False)


class RecordedWorkerEntry(Spec):
    """A worker whose outcomes are in files: per benchmark, where they are written and which column is what.

    ``model`` is what the files call it where they hold several models; by default it is the worker's own name.
    """

    recorded: Annotated[dict[Slug, RecordedOutcomes], Field(min_length=1)]
    model: str | None = None
    price: Price | None = None


def _kind_of_worker(entry: Any) -> str:
    return "recorded worker" if isinstance(entry, dict) and RECORDED in entry else "asked worker"


AnyWorkerEntry = Annotated[
    Annotated[WorkerEntry, Tag("asked worker")] | Annotated[RecordedWorkerEntry, Tag("recorded worker")],
    Discriminator(_kind_of_worker),
]

PoolEntry = Annotated[tuple[Slug, ...], Field(min_length=2)]
"""The workers offered to a router, in order; the order breaks ties."""


def _known_preset(name: str) -> str:
    if name not in PRESETS:
        raise ValueError(f"there is no preset {name!r}; there are {', '.join(sorted(PRESETS))}")
    return name


PresetName = Annotated[str, AfterValidator(_known_preset), Field(json_schema_extra={"enum": sorted(PRESETS)})]
"""A key of ``PRESETS``."""


class BenchmarkEntry(Spec):
    """A benchmark. A ``preset`` fills in fields, prompt and grader; what is written beside it wins, field by field."""

    source: TaskSource
    preset: PresetName | None = None
    fields: FieldMapping | None = None
    category: str | None = None
    prompt: str | None = None
    grader: GraderSpec | None = None
    settlement: Settlement = Settlement()
    limit: Annotated[int, Field(gt=0)] | None = None
    seed: int | None = None
    quarantine: tuple[Quarantined, ...] = ()


class RouterEntry(RouterTraining):
    """A router: a pool, the benchmarks it learns from, a backbone, and how it is trained."""

    pool: Slug
    benchmarks: Annotated[tuple[Slug, ...], Field(min_length=1)]
    backbone: Slug


# Entries of these sections are specs that know their own name, which in YAML is the key above them.
NAMED_BY_KEY = frozenset({"providers", "backbones"})

# A section that is one entry, not a mapping of names to entries.
SINGLE = frozenset(Operations.model_fields)

# What a catalog of recorded workers alone has no use for, and what any catalog may do without.
OPTIONAL = frozenset({"providers", "prompts"}) | SINGLE

FILES: dict[str, dict[str, Any]] = {
    "providers.yaml": {"providers": ProviderSpec},
    "workers.yaml": {"workers": AnyWorkerEntry, "prompts": PromptStyle, "pools": PoolEntry},
    "benchmarks.yaml": {"benchmarks": BenchmarkEntry},
    "backbones.yaml": {"backbones": BackboneSpec},
    "routers.yaml": {"routers": RouterEntry},
    "operations.yaml": {"budget": RunBudget, "rebaseline": Schedule, "sentinel": SentinelSpec},
}
"""File name -> section -> type of each entry."""


def json_schema(file: str) -> dict[str, Any]:
    """The JSON Schema, draft 2020-12, of one catalog file, for editors."""
    definitions: dict[str, Any] = {}
    sections: dict[str, Any] = {}
    for section, entry in FILES[file].items():
        schema = TypeAdapter(entry).json_schema()
        shared = schema.pop("$defs", {})
        if section in NAMED_BY_KEY:
            for named in (schema, *shared.values()):
                _drop_name(named)
        definitions |= shared
        if section in SINGLE:
            sections[section] = schema
            continue
        names = {"pattern": SLUG_PATTERN, "maxLength": SLUG_MAX_LENGTH}
        sections[section] = {"type": "object", "propertyNames": names, "additionalProperties": schema}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": file,
        "type": "object",
        "properties": sections,
        "additionalProperties": False,
        "$defs": definitions,
    }


def _drop_name(schema: dict[str, Any]) -> None:
    """Take out the name that the key above an entry gives it."""
    schema.get("properties", {}).pop("name", None)
    schema["required"] = [field for field in schema.get("required", []) if field != "name"]
