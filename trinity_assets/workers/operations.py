"""How a catalog's workers are operated: what a run may cost, and when answers are asked again. In no digest."""

from __future__ import annotations

import zoneinfo
from typing import Annotated

from pydantic import AfterValidator, Field

from trinity_assets.spec import Spec
from trinity_assets.workers.cron import require_cron


def _known_timezone(name: str) -> str:
    if name not in zoneinfo.available_timezones():
        raise ValueError(f"there is no time zone {name!r}; give one as in Europe/Berlin")
    return name


Cron = Annotated[str, AfterValidator(require_cron)]
"""A cron line of five fields that comes on some day (``cron``)."""

Timezone = Annotated[str, AfterValidator(_known_timezone)]
"""A name of the IANA time zone database."""


class RunBudget(Spec):
    """``run_usd``: what one build, or one run that is started elsewhere, may cost over all workers, in USD."""

    run_usd: float = Field(gt=0, allow_inf_nan=False)


class Schedule(Spec):
    """When to act: a cron line, read in ``timezone``."""

    cron: Cron
    timezone: Timezone = "UTC"


class SentinelSpec(Spec):
    """A worker's sentinel: ``tasks`` of its benchmarks, drawn by ``seed``, are asked ``repeats`` times at each tick.

    Without ``schedule`` it is asked by hand.
    """

    tasks: int = Field(default=20, gt=0)
    repeats: int = Field(default=2, ge=2)
    seed: int = 0
    schedule: Schedule | None = None


class Operations(Spec):
    """What ``operations.yaml`` declares; every part may be left out."""

    budget: RunBudget | None = None
    rebaseline: Schedule | None = None
    sentinel: SentinelSpec | None = None
