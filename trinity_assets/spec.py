"""The base of every spec: a frozen pydantic model, a slug, and a digest of canonical JSON.

Belongs here: what makes two declarations "the same" for the whole house. Does not belong here: any spec of a
particular room (each package defines its own) and any reading of YAML (``catalog/``).
"""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    ModelWrapValidatorHandler,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

SLUG_PATTERN = r"^[a-z][a-z0-9_]*$"
SLUG_MAX_LENGTH = 48

Slug = Annotated[str, StringConstraints(pattern=SLUG_PATTERN, max_length=SLUG_MAX_LENGTH)]
"""A name that survives as asset key, op name, tag value and column: lower case, digits, underscores."""

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
"""A sha256 in lower case hex digits."""


class Spec(BaseModel):
    """A declared fact: immutable, compared by value, and closed to unknown fields, which are told what is allowed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="wrap")
    @classmethod
    def _name_the_allowed_fields(cls, data: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return validate(data)
        except ValidationError as error:
            faults = [cls._explained(detail) for detail in error.errors(include_url=False)]
            raise ValidationError.from_exception_data(cls.__name__, faults) from None

    @classmethod
    def _explained(cls, detail: ErrorDetails) -> InitErrorDetails:
        message = detail["msg"]
        if detail["type"] == "extra_forbidden" and len(detail["loc"]) == 1:
            message = f"unknown field; allowed: {', '.join(name for name in cls.model_fields if name != 'name')}"
        explained = PydanticCustomError("explained", message)
        return InitErrorDetails(type=explained, loc=detail["loc"], input=detail["input"])


def canonical_json(value: Any) -> str:
    """``value`` as JSON with sorted keys, no spaces and no NaN: equal values give equal text on every machine."""
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Any) -> str:
    """The sha256, 64 hex digits, of ``value`` as canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()
