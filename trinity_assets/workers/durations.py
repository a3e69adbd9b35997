"""How long planned answers take, in minutes: by the calls' own time, and by what provider and worker may do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trinity_assets.workers.specs import MINUTE_S, EmbeddedProvider, Limits, ProviderSpec, WorkerSpec


@dataclass(frozen=True)
class Work:
    """What one cell takes: ``missing`` answers by so many ``calls``, all their tokens, and the sum of their seconds."""

    worker: WorkerSpec
    missing: int
    calls: float
    tokens: float
    seconds: float


def step_minutes(cell: Work) -> float:
    """How long one cell takes alone, in one step."""
    return _minutes([cell], cell.worker.limits.within(_step_limits(cell.worker.provider)))


def worker_minutes(cells: Sequence[Work]) -> float:
    """How long one worker's cells take beside each other, with its provider to itself."""
    worker = cells[0].worker
    shared = _minutes(cells, worker.limits.within(_provider_limits(worker.provider)))
    return max(shared, *map(step_minutes, cells))


def provider_minutes(workers: Sequence[Sequence[Work]]) -> float:
    """How long the cells of one provider take, given by worker: they share its limits, and so many steps at once."""
    cells = [cell for own in workers for cell in own]
    provider = cells[0].worker.provider
    return max(
        _minutes(cells, _provider_limits(provider)),
        sum(map(step_minutes, cells)) / provider.parallel_steps,
        *map(worker_minutes, workers),
    )


def _minutes(cells: Sequence[Work], limits: Limits) -> float:
    """The largest of three bounds: the time of the calls, the requests per minute, the tokens per minute."""
    missing, calls = sum(cell.missing for cell in cells), sum(cell.calls for cell in cells)
    if not missing:
        return 0.0
    tokens = sum(cell.tokens for cell in cells)
    busy = sum(cell.seconds for cell in cells) / MINUTE_S / min(limits.concurrency, missing)
    return max(busy, calls / limits.rpm if limits.rpm else 0.0, tokens / limits.tpm if limits.tpm else 0.0)


def _step_limits(provider: ProviderSpec) -> Limits:
    """What one step may do."""
    return Limits(concurrency=provider.slots) if isinstance(provider, EmbeddedProvider) else provider.limits


def _provider_limits(provider: ProviderSpec) -> Limits:
    """What all steps together may do: several serve an embedded model at once, others share what a remote one bears."""
    if isinstance(provider, EmbeddedProvider):
        return Limits(concurrency=provider.slots * provider.parallel_steps)
    return provider.limits
