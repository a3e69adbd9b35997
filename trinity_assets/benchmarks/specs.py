"""What a benchmark declares about its tasks: the source, the mapping of fields, the prompt template, the selection."""

from __future__ import annotations

import datetime
import re
import string
from typing import Annotated, Any, Literal
from urllib.parse import unquote

from pydantic import AfterValidator, Field, JsonValue, field_validator, model_validator

from trinity_assets.benchmarks.formats import check_format, formats
from trinity_assets.spec import Sha256, Slug, Spec

SNAPSHOT_VERSION = 2
"""The version of the code that takes snapshots: raise it when equal sources would give other tables."""

CONTAMINATION_VERSION = 1
"""The version of the code that looks for contamination: raise it when equal tasks would give another report."""


# Both are looked for in the text and not in the parts of a URL, since fsspec nests one in another
# (``simplecache::https://...``).
_USER = re.compile(r"://[^/?#]*@")
_PARAMETER = re.compile(r"[?&;#]([^?&;#=]+)=")
_SECRET_PARAMETER = re.compile(r"sig|signature|token|access_token|key|api_?key|x-(?:amz|goog)-.*", re.IGNORECASE)


def _without_credentials(path: str) -> str:
    if "://" not in path:
        return path
    found = ["a user or token before the host"] if _USER.search(path) else []
    names = dict.fromkeys(map(unquote, _PARAMETER.findall(path)))
    found += [f"the parameter {name!r}" for name in names if _SECRET_PARAMETER.fullmatch(name)]
    if found:
        raise ValueError(
            f"the URL holds {' and '.join(found)}, which would be written into every artifact; leave it out and give "
            "the credentials by environment, or give the path of a local copy"
        )
    return path


def _of_a_known_format(path: str) -> str:
    check_format(path)
    return path


_Formatted = AfterValidator(_of_a_known_format)
_ENDINGS = f"Its name ends in {formats()}."


class FileSource(Spec):
    """Tasks in a file, whose ending says how it is read.

    ``path`` is relative to the catalog's directory, or a URL that fsspec opens (``https://``, ``s3://``). ``sha256``
    pins the file's bytes as they lie there; without it, a change behind a URL goes unnoticed.
    """

    kind: Literal["file"]
    # What is no format is quoted, so credentials are looked for first.
    path: Annotated[str, AfterValidator(_without_credentials), _Formatted, Field(description=_ENDINGS)]
    sha256: Sha256 | None = None

    @property
    def is_url(self) -> bool:
        """Whether ``path`` names something that is reached through fsspec."""
        return "://" in self.path


class PackageSource(Spec):
    """Tasks in a file inside an installed distribution, in any of the formats of a file source."""

    kind: Literal["package"]
    package: str
    path: Annotated[str, _Formatted, Field(description=_ENDINGS)]


class HuggingFaceSource(Spec):
    """Tasks in a data set of the Hugging Face hub, at a pinned revision."""

    kind: Literal["huggingface"]
    repo: str
    config: str | None = None
    split: str
    revision: str


class ProceduralSource(Spec):
    """Tasks that reasoning-gym generates: the first ``size`` of its data set ``dataset`` under ``seed``.

    ``config`` holds the data set's own parameters. The installed version of reasoning-gym is part of the source's
    version, since another one may give other tasks under the same seed.
    """

    kind: Literal["procedural"]
    dataset: str
    seed: int
    size: Annotated[int, Field(gt=0)]
    config: dict[str, JsonValue] = Field(default_factory=dict)

    @field_validator("config")
    @classmethod
    def _leaves_out_what_is_declared_beside_it(cls, config: dict[str, JsonValue]) -> dict[str, JsonValue]:
        if taken := sorted(config.keys() & {"seed", "size"}):
            raise ValueError(f"{', '.join(taken)} belong beside the config, not into it")
        return config


TaskSource = Annotated[
    FileSource | PackageSource | HuggingFaceSource | ProceduralSource,
    Field(discriminator="kind"),
]

ANSWER_KEY = "answer"
"""The key of a gold payload that holds the right answer."""
CHOICE_KEYS = ("choices", "labels")
"""The keys of a gold payload that hold a multiple choice task's options and their labels, in order."""


class FieldMapping(Spec):
    """Which field of a source row is what.

    ``id`` may be null: the row number then names the task. ``category`` may be null: the benchmark's name then is the
    one category. ``gold`` maps the grader's payload keys to row fields.

    ``choices`` makes the tasks multiple choice. It is a row field that holds a list of texts or ``{text: [...],
    label: [...]}``, or a list of row fields that hold one option each. The options then are part of the question, and
    the gold answer becomes the right option's label.
    """

    id: str | None = "id"
    question: str = "question"
    category: str | None = None
    gold: dict[str, str] = Field(default_factory=lambda: {ANSWER_KEY: ANSWER_KEY})
    choices: str | Annotated[tuple[str, ...], Field(min_length=2)] | None = None

    @property
    def choice_fields(self) -> tuple[str, ...]:
        """The row fields that hold options."""
        return (self.choices,) if isinstance(self.choices, str) else self.choices or ()

    @model_validator(mode="after")
    def _choices_have_an_answer(self) -> FieldMapping:
        if self.choices is not None:
            if ANSWER_KEY not in self.gold:
                raise ValueError(f"multiple choice needs the field of the right option; gold has no {ANSWER_KEY!r}")
            if taken := [key for key in CHOICE_KEYS if key in self.gold]:
                raise ValueError(f"gold maps {', '.join(taken)}, which are filled from the choices; leave them out")
        return self


class Quarantined(Spec):
    """A task that is left out although its source holds it, why, and since when."""

    id: str | int
    reason: Annotated[str, Field(min_length=1)]
    date: datetime.date

    @property
    def task_id(self) -> str:
        """The id as tasks have it."""
        return str(self.id)


class SnapshotSpec(Spec):
    """Everything a benchmark's snapshot depends on.

    ``prompt`` is the template that a worker is shown; ``{question}`` and ``{<any row field>}`` are replaced.
    ``limit`` keeps the first rows of the source or, with a ``seed``, the first in an order that the seed and each
    task's id decide; either way a larger limit only adds tasks. ``quarantine`` takes tasks out of what was selected.
    """

    name: Slug
    source: TaskSource
    fields: FieldMapping = FieldMapping()
    prompt: str = "{question}"
    limit: Annotated[int, Field(gt=0)] | None = None
    seed: int | None = None
    quarantine: tuple[Quarantined, ...] = ()

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

    @field_validator("quarantine")
    @classmethod
    def _quarantined_once(cls, quarantine: tuple[Quarantined, ...]) -> tuple[Quarantined, ...]:
        ids = [entry.task_id for entry in quarantine]
        if repeated := sorted({task_id for task_id in ids if ids.count(task_id) > 1}):
            raise ValueError(f"{', '.join(map(repr, repeated))} are quarantined twice; keep one entry of each")
        return quarantine

    def asked_identity(self, source_version: str) -> dict[str, Any]:
        """What decides the ``tasks`` table. ``source_version`` names the source's bytes.

        Of the prompt template only the fields that it shows: its wording is part of what a worker is asked, not of
        the question, so a new wording asks the workers again and leaves the features alone.
        """
        identity = self.gold_identity(source_version)
        del identity["fields"]["gold"]
        return identity | {"shown": sorted(prompt_fields(self.prompt))}

    def gold_identity(self, source_version: str) -> dict[str, Any]:
        """What decides the ``gold`` table. Why and since when a task is quarantined decides nothing."""
        decided_beside = {
            "quarantine": sorted(entry.task_id for entry in self.quarantine),
            "source_version": source_version,
            "snapshot_version": SNAPSHOT_VERSION,
        }
        return self.model_dump(mode="json", exclude={"prompt", "quarantine"}) | decided_beside


def prompt_fields(template: str) -> set[str]:
    """The names of the placeholders in a prompt template."""
    return {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}
