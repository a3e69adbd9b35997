"""Where a search may start in place of zero: a head that was trained before, fitted to the pool as it is now.

**What has seen the held-out tasks is no start.** A head learnt from its own train tasks, and the one that it started
from from others; a search that goes on from there keeps some of that. So all tables behind an earlier head are held
against the present split. Cross-fitting starts from zero in every case, since no earlier head was learnt without the
fold that is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from trinity_assets.errors import TrainingError
from trinity_assets.routing.head import HeadRow, Heads, read_heads
from trinity_assets.routing.inputs import RouterData, learnt_from_held_out
from trinity_assets.routing.objective import TableObjective
from trinity_assets.routing.pool_changes import PoolHead, fit_to_pool
from trinity_assets.routing.specs import TRAINERS, RouterTraining, trainer_of
from trinity_assets.routing.trainers.all_heads import train_heads
from trinity_assets.routing.trainers.head import FROM_ZERO, Start, TrainedHead, TrainingRecord
from trinity_assets.store.artifacts import ArtifactStore

STARTED_FROM = "started_from"
"""What a record has among ``chosen`` where its head did not start from zero: the sha256 of the heads that it did."""


@dataclass(frozen=True)
class EarlierHead:
    """A head trained before; ``sha256`` is that of the artifact or the file it lies in."""

    head: PoolHead
    sha256: str


def named_rows(workers: Sequence[str]) -> tuple[HeadRow, ...]:
    """The rows of workers that only a table knows: who has the same name is the same."""
    return tuple(HeadRow(name=worker, digest=worker) for worker in workers)


def head_to_start_from(records: Mapping[str, TrainingRecord], training: RouterTraining) -> str:
    """Which of the heads with these ``records`` a search starts from: its own, else the first that is no constant.

    Raises:
        TrainingError: all of them ask one worker, whatever the question.
    """
    for name in (*training.searching, *records):
        if name in records and records[name].constant is None:
            return name
    raise TrainingError(f"there is nothing to start from in {list(records)}: each asks one worker, always")


def earlier_head(store: ArtifactStore, sha256: str, data: RouterData, training: RouterTraining) -> EarlierHead:
    """The head to start from among a router's heads in the artifact ``sha256``, for the table ``data``.

    Raises:
        TrainingError: why they are no start for it.
        ArtifactError: they, or what they started from, are gone or damaged.
    """
    heads = read_heads(store, sha256)
    if differences := heads.spec.feature_spec.differences(data.feature_spec):
        raise TrainingError(f"the heads before were made for other features: {'; '.join(differences)}")
    earlier = EarlierHead(_pool_head(heads, training), sha256)
    require_start(earlier, data.pool, data.features.shape[1])
    for table_sha256 in tables_behind(store, sha256):
        if seen := learnt_from_held_out(store, table_sha256, data):
            raise TrainingError(f"the heads before have learnt from {seen} of the tasks that are held out now")
    return earlier


def tables_behind(store: ArtifactStore, sha256: str) -> list[str]:
    """The shas of the tables that the heads in the artifact ``sha256``, and all that they started from, learnt from.

    Raises:
        ArtifactError: one of these heads is gone or damaged.
    """
    tables: dict[str, None] = {}
    waiting = [sha256]
    while waiting:
        spec = read_heads(store, waiting.pop()).spec
        tables[spec.table_sha256] = None
        waiting += {r.chosen[STARTED_FROM] for r in spec.trainers.values() if STARTED_FROM in r.chosen}
    return list(tables)


def require_start(earlier: EarlierHead, pool: Sequence[HeadRow], width: int) -> None:
    """See that something of an earlier head is left for ``pool`` and features of ``width``.

    Raises:
        TrainingError: it has another width, or a row of none of the pool's workers.
    """
    before = earlier.head
    if before.weights.shape[1] != width:
        raise TrainingError(
            f"the head to start from is for features of width {before.weights.shape[1]}, and these have {width}; give "
            "features of the kind that it was trained on, or no head to start from"
        )
    if not {row.digest for row in before.rows} & {row.digest for row in pool}:
        raise TrainingError(
            f"the head to start from has rows of {[row.name for row in before.rows]}, and none of them is in the pool "
            f"{[row.name for row in pool]} as it was then; without a common worker searches start from zero"
        )


def train_from(
    earlier: EarlierHead | None,
    objective: TableObjective,
    pool: Sequence[HeadRow],
    training: RouterTraining,
    start: Start = FROM_ZERO,
) -> dict[str, TrainedHead]:
    """As :func:`train_heads`, what searches starting from ``earlier``, whose sha its records then name.

    Args:
        objective: of a table whose columns are ``pool``.

    Raises:
        TrainingError: as ``train_heads``, or there is nothing to start from for this pool and width.
    """
    if earlier is None:
        return train_heads(objective, training, start)
    require_start(earlier, pool, objective.shape[1])
    initial = fit_to_pool(earlier.head, pool, objective).weights
    trained = train_heads(objective, training, replace(start, initial=initial))
    searched = {name for name in trained if TRAINERS[trainer_of(name)].searches}
    return {name: _noted(head, earlier.sha256) if name in searched else head for name, head in trained.items()}


def _noted(head: TrainedHead, sha256: str) -> TrainedHead:
    chosen = head.record.chosen | {STARTED_FROM: sha256}
    return replace(head, record=head.record.model_copy(update={"chosen": chosen}))


def _pool_head(heads: Heads, training: RouterTraining) -> PoolHead:
    name = head_to_start_from(heads.spec.trainers, training)
    return PoolHead(heads.weights[name], heads.spec.workers)
