"""Which rows of a source are tasks: the first ones or a seeded sample, less those that are quarantined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trinity_assets.benchmarks.specs import Quarantined, SnapshotSpec
from trinity_assets.errors import TaskSourceError, listed
from trinity_assets.spec import digest


@dataclass(frozen=True)
class Selection:
    """Numbers of rows. A larger limit appends to ``order`` and changes nothing before.

    ``order`` holds every selected row in the order of selection, and ``quarantined`` those of them that are left out,
    each with its entry of the catalog.
    """

    order: list[int]
    quarantined: dict[int, Quarantined]

    @property
    def kept(self) -> list[int]:
        """The rows that become tasks, in source order."""
        return sorted(set(self.order) - self.quarantined.keys())


def select_rows(spec: SnapshotSpec, ids: Sequence[str | None]) -> Selection:
    """The rows that ``spec`` selects; ``ids`` holds the task id of every row of the source, None where it has none.

    The quarantine is applied to what was selected: it draws no new tasks in, whose answers would have to be bought.

    Raises:
        TaskSourceError: a quarantined id is in no row, or a seed cannot order rows that have no id.
    """
    entries = {entry.task_id: entry for entry in spec.quarantine}
    if unknown := sorted(entries.keys() - set(ids)):
        raise TaskSourceError(
            f"benchmark {spec.name}: the quarantine names ids that no row of the source has: "
            f"{listed([repr(task_id) for task_id in unknown], ', ')}; correct or remove them"
        )
    order = _ordered(spec, ids)[: spec.limit]
    quarantined = ((row, entries.get(task_id)) for row in order if (task_id := ids[row]) is not None)
    return Selection(order, {row: entry for row, entry in quarantined if entry is not None})


def _ordered(spec: SnapshotSpec, ids: Sequence[str | None]) -> list[int]:
    if spec.seed is None:
        return list(range(len(ids)))
    nameless = [f"row {number}" for number, task_id in enumerate(ids) if task_id is None]
    if nameless:
        raise TaskSourceError(
            f"benchmark {spec.name}: a seed orders tasks by their ids, and there is none in field {spec.fields.id!r} "
            f"of {listed(nameless, ', ')}; name another field, or null to number the rows"
        )
    return sorted(range(len(ids)), key=lambda row: (digest([spec.seed, ids[row]]), row))
