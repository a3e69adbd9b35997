"""What a benchmark declares about its tasks: the source, the mapping of fields, the prompt template, the selection."""

from __future__ import annotations

import string
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from trinity_assets.spec import Slug, Spec

SNAPSHOT_VERSION = 1
"""The version of the code that takes snapshots: raise it when equal sources would give other tables."""


class FileSource(Spec):
    """Tasks in a JSON Lines file (``.jsonl``, ``.jsonl.gz``), by a path relative to the catalog's directory."""

    kind: Literal["file"]
    path: str


class PackageSource(Spec):
    """Tasks in a JSON Lines file inside an installed distribution."""

    kind: Literal["package"]
    package: str
    path: str


class HuggingFaceSource(Spec):
    """Tasks in a dataset of the Hugging Face hub, at a pinned revision."""

    kind: Literal["huggingface"]
    repo: str
    config: str | None = None
    split: str
    revision: str


TaskSource = Annotated[FileSource | PackageSource | HuggingFaceSource, Field(discriminator="kind")]


class FieldMapping(Spec):
    """Which field of a source row is what.

    ``id`` may be null: the row number then names the task. ``category`` may be null: the benchmark's name then is the
    one category. ``gold`` maps the grader's payload keys to row fields.
    """

    id: str | None = "id"
    question: str = "question"
    category: str | None = None
    gold: dict[str, str] = Field(default_factory=lambda: {"answer": "answer"})


class SnapshotSpec(Spec):
    """Everything a benchmark's snapshot depends on.

    ``prompt`` is the template that a worker is shown; ``{question}`` and ``{<any row field>}`` are replaced.
    ``limit`` keeps the first rows of the source, so that a larger limit only adds tasks.
    """

    name: Slug
    source: TaskSource
    fields: FieldMapping = FieldMapping()
    prompt: str = "{question}"
    limit: Annotated[int, Field(gt=0)] | None = None

    @field_validator("prompt")
    @classmethod
    def _placeholders_are_names(cls, prompt: str) -> str:
        try:
            names = prompt_fields(prompt)
        except ValueError as error:
            raise ValueError(f"not a template: {error}; write a literal brace twice") from error
        if not all(name.isidentifier() for name in names):
            raise ValueError("every placeholder is {question} or {<name of a row field>}")
        if not names:
            raise ValueError("the template shows the worker no field; {question} is missing")
        return prompt

    def asked_identity(self, source_version: str) -> dict[str, Any]:
        """What decides the ``tasks`` table. ``source_version`` names the source's bytes.

        Of the prompt template only the fields that it shows: its wording is part of what a worker is asked, not of
        the question, so a new wording asks the workers again and leaves the features alone.
        """
        identity = self.gold_identity(source_version)
        del identity["fields"]["gold"]
        return identity | {"shown": sorted(prompt_fields(self.prompt))}

    def gold_identity(self, source_version: str) -> dict[str, Any]:
        """What decides the ``gold`` table."""
        versions = {"source_version": source_version, "snapshot_version": SNAPSHOT_VERSION}
        return self.model_dump(mode="json", exclude={"prompt"}) | versions


def prompt_fields(template: str) -> set[str]:
    """The names of the placeholders in a prompt template."""
    return {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}
