"""What a test needs and may not find on every machine: then it is skipped, and with ``CI=true`` it fails."""

from __future__ import annotations

import functools
import os
from typing import NoReturn

import pytest

from trinity_assets.errors import SandboxError
from trinity_assets.sandbox.probing import find_sandbox, tier_fault
from trinity_assets.sandbox.tiers import LADDER, Tier


def missing(message: str) -> NoReturn:
    """Skip the test that needs it, or fail it where everything must be there."""
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


@functools.cache
def _fault(name: str) -> str | None:
    return tier_fault(LADDER[name])


def needed_tier(name: str) -> Tier:
    """The tier of this name, which must hold on this machine for whoever runs the tests."""
    if fault := _fault(name):
        missing(f"the sandbox {name} does not hold on this machine: {fault}")
    return LADDER[name]


@functools.cache
def _no_sandbox() -> str | None:
    try:
        find_sandbox()
    except SandboxError as error:
        return str(error)
    return None


def needed_sandbox() -> None:
    """See that some tier holds on this machine."""
    if fault := _no_sandbox():
        missing(fault)
