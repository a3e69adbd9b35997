"""The base of every spec: a frozen pydantic model, a slug, and a digest of canonical JSON.

Belongs here: what makes two declarations "the same" for the whole house, and how a fault in one is worded. Does not
belong here: any spec of a particular room (each package defines its own) and any reading of YAML (``catalog/``).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    ModelWrapValidatorHandler,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from trinity_assets.texts import counted

SLUG_PATTERN = r"^[a-z][a-z0-9_]*$"
SLUG_MAX_LENGTH = 48
NOT_A_SLUG = f"not a name; allowed: a-z, 0-9 and _, a letter first, at most {SLUG_MAX_LENGTH}"
SHA256_PATTERN = r"^[0-9a-f]{64}$"

Slug = Annotated[str, StringConstraints(pattern=SLUG_PATTERN, max_length=SLUG_MAX_LENGTH)]
"""A name that survives as asset key, op name, tag value and column: lower case, digits, underscores."""

Sha256 = Annotated[str, StringConstraints(pattern=SHA256_PATTERN)]
"""A sha256 in lower case hex digits."""

NonEmpty = Annotated[str, StringConstraints(min_length=1)]
"""A text of at least one character."""

_BRANCHES = ("main", "master", "HEAD")


def _no_branch(revision: str) -> str:
    if revision in _BRANCHES:
        raise ValueError(f"{revision} is a branch, and a branch moves; give a commit or a tag")
    return revision


Revision = Annotated[NonEmpty, AfterValidator(_no_branch)]
"""A commit or a tag of a repository on the Hugging Face hub. A branch of another name cannot be told from a tag."""


class Spec(BaseModel):
    """A declared fact: immutable, compared by value, and closed to unknown fields.

    A fault in one is worded for the person who wrote it, in :meth:`_explained`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="wrap")
    @classmethod
    def _explain_faults(cls, data: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        faults = list(cls._booleans_as_numbers(data)) if isinstance(data, Mapping) else []
        told = {fault["loc"] for fault in faults}
        try:
            valid = validate(data)
        except ValidationError as error:
            faults += [cls._explained(one) for one in error.errors(include_url=False) if one["loc"] not in told]
        if faults:
            raise ValidationError.from_exception_data(cls.__name__, faults) from None
        return valid

    @classmethod
    def _booleans_as_numbers(cls, data: Mapping[Any, Any]) -> Iterator[InitErrorDetails]:
        """Pydantic takes true for 1."""
        for name, value in data.items():
            types = set(_types(cls.model_fields[name])) if name in cls.model_fields else set()
            if isinstance(value, bool) and types & {int, float} and bool not in types:
                yield _fault("a boolean where a number belongs", (name,), value)

    @classmethod
    def _explained(cls, detail: ErrorDetails) -> InitErrorDetails:
        """``detail`` in our words; what a spec within this one has said stays as it is."""
        location = detail["loc"]
        if not location:
            message = worded(detail, cls)
        elif detail["type"] == "extra_forbidden" and len(location) == 1:
            message = f"unknown field; allowed: {_field_names(cls)}"
        else:
            message = worded(detail, cls.model_fields.get(str(location[0])) if len(location) == 1 else None)
        return _fault(message, location, detail["input"])


def _fault(message: str, location: tuple[int | str, ...], value: Any) -> InitErrorDetails:
    return InitErrorDetails(
        type=PydanticCustomError("explained", "{message}", {"message": message}), loc=location, input=value
    )


def worded(detail: ErrorDetails, expected: Any = None) -> str:
    """What is wrong, for the person who wrote it; ``expected`` is the type or the field that did not get its value."""
    context = detail.get("ctx", {})
    match detail["type"]:
        case "missing":
            return "missing"
        case "model_type" | "model_attributes_type" | "dict_type" | "mapping_type":
            return f"expected a mapping{_example(detail['input'], expected)}"
        case "list_type" | "tuple_type":
            return "expected a list, as in [first, second]"
        case "union_tag_invalid":
            allowed = context["expected_tags"].replace("'", "")
            return f"unknown {context['discriminator'].strip(chr(39))} {context['tag']!r}; allowed: {allowed}"
        case "union_tag_not_found":
            return f"{context['discriminator'].strip(chr(39))} is missing; allowed: {', '.join(_kinds(expected))}"
        case "literal_error":
            return f"unknown value {detail['input']!r}; allowed: {context['expected'].replace(chr(39), '')}"
        case "string_pattern_mismatch" if context.get("pattern") == SHA256_PATTERN:
            return "not a sha256: 64 lower-case hex digits"
        case "string_pattern_mismatch" if context.get("pattern") == SLUG_PATTERN:
            return NOT_A_SLUG
        case "string_too_short":
            return "empty"
        case "string_too_long":
            return f"longer than {counted(context['max_length'], 'character')}"
        case "too_short":
            return f"at least {counted(context['min_length'], 'item')} needed; it has {context['actual_length']}"
        case "too_long":
            return f"at most {counted(context['max_length'], 'item')} allowed"
        case "string_type":
            scalar = not isinstance(detail["input"], (Mapping, list, tuple))
            return "not a text" + ("; put it in quotes if it is meant as one" if scalar else "")
        case "bool_type" | "bool_parsing":
            return "neither true nor false"
        case "int_type" | "int_parsing" | "int_parsing_size" | "int_from_float":
            return "not a whole number"
        case "float_type" | "float_parsing" | "finite_number":
            return "not a number"
        case kind if kind.startswith("date_"):
            return "not a date; write YYYY-MM-DD"
    return detail["msg"].removeprefix("Value error, ").replace("Input should be", "it has to be")


def _example(given: Any, expected: Any) -> str:
    """How the mapping that ``expected`` takes may look, where that can be told."""
    if isinstance(expected, FieldInfo):
        default = expected.get_default(call_default_factory=True, validated_data={})
        if isinstance(default, dict) and default and isinstance(given, str):
            return f", as in {{{next(iter(default))}: {given}}}"
    if kinds := _kinds(expected):
        shown = given if given in kinds else kinds[0]
        return f" such as {{kind: {shown}}}; kinds: {', '.join(kinds)}"
    specs = _specs(expected)
    return f" with {_field_names(specs[0])}" if len(specs) == 1 and specs[0].model_fields else " of names to values"


def _field_names(spec: type[Spec]) -> str:
    """The fields that a person writes; a name is the key above them."""
    return ", ".join(name for name in spec.model_fields if name != "name")


def _kinds(expected: Any) -> list[str]:
    """The kinds that the specs in a type or field tell themselves apart by."""
    fields = [spec.model_fields["kind"] for spec in _specs(expected) if "kind" in spec.model_fields]
    return [kind for field in fields for kind in get_args(field.annotation)]


def _specs(expected: Any) -> list[type[Spec]]:
    return [one for one in _types(expected) if isinstance(one, type) and issubclass(one, Spec)]


def _types(expected: Any) -> Iterator[Any]:
    """Every type that occurs in a type or field."""
    expected = expected.annotation if isinstance(expected, FieldInfo) else expected
    parts = get_args(expected)
    if not parts:
        yield expected
    for part in parts:
        yield from _types(part)


def canonical_json(value: Any) -> str:
    """``value`` as JSON with sorted keys, no spaces and no NaN: equal values give equal text on every machine."""
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Any) -> str:
    """The sha256, 64 hex digits, of ``value`` as canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()
