"""What a router's table says beside its rows: whether there is anything to route, and what each worker is worth."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import dagster as dg

if TYPE_CHECKING:
    from trinity_assets.routing.admission import Admission
    from trinity_assets.routing.headroom import Headroom

WORTH_ROUTING = "worth_routing"
"""The check of a router's headroom."""

HEADROOM = "headroom"
"""The metadata that holds its report."""


def headroom_check(key: dg.AssetKey) -> dg.AssetCheckSpec:
    """The definition of the check :data:`WORTH_ROUTING` of the table ``key``."""
    return dg.AssetCheckSpec(
        WORTH_ROUTING,
        asset=key,
        description=(
            "Warns when there is nothing to route, before anything is trained: all workers solve the same tasks, one "
            "is best on all, or the held-out tasks are too few to show even a perfect router's gain."
        ),
    )


def headroom_checked(key: dg.AssetKey, found: "Headroom") -> dg.AssetCheckResult:
    """The check of the table ``key``, of whose train tasks ``found`` was found."""
    from trinity_assets.routing.headroom_report import headroom_verdict

    return dg.AssetCheckResult(
        asset_key=key,
        check_name=WORTH_ROUTING,
        passed=found.nothing_to_route is None,
        severity=dg.AssetCheckSeverity.WARN,
        description=": ".join(headroom_verdict(found)),
    )


def headroom_metadata(found: "Headroom", added: "Mapping[str, Admission]") -> dict[str, Any]:
    """The headroom on the table's page: the report, and as numbers what a perfect router gains and what can be seen.

    The report ends with what each worker ``added`` to the others.
    """
    from trinity_assets.routing.headroom_report import headroom_markdown
    from trinity_assets.routing.pool_admission import admissions_markdown

    numbers = {
        "headroom_oracle": found.oracle.value if found.oracle else None,
        "headroom_cross_fitted": found.cross_fitted.value if found.cross_fitted else None,
        "headroom_lookup": found.lookup.value if found.lookup else None,
        "detectable": found.detectable,
    }
    known = {name: value for name, value in numbers.items() if value is not None}
    said = headroom_markdown(found) + admissions_markdown(added)
    return {HEADROOM: dg.MetadataValue.md(said), **known}
