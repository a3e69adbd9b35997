from __future__ import annotations

import asyncio

import pytest

from trinity_assets.workers.outcomes import Outcome, Status
from trinity_assets.workers.pacing import Pacer, estimated_tokens
from trinity_assets.workers.retrying import RetryPolicy
from trinity_assets.workers.specs import Limits


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


def turns(limits: Limits, tokens: list[int], *, used: list[int] | None = None) -> list[float]:
    """When each call starts, in seconds after the first."""
    clock = Clock()

    async def take() -> list[float]:
        pacer = Pacer(limits, clock=clock, sleep=clock.sleep)
        times = []
        for index, size in enumerate(tokens):
            reservation = await pacer.turn(size)
            times.append(clock.now - 100.0)
            pacer.settle(reservation, used[index] if used else None)
        return times

    return asyncio.run(take())


def test_requests_per_minute_are_evenly_spaced() -> None:
    assert turns(Limits(rpm=40), [1, 1, 1]) == pytest.approx([0, 1.5, 3.0])


def test_tokens_per_minute_are_never_exceeded_in_any_minute() -> None:
    assert turns(Limits(tpm=100), [60, 40, 10, 95]) == pytest.approx([0, 0, 60, 120])


def test_what_was_not_used_is_given_back() -> None:
    assert turns(Limits(tpm=100), [90, 90], used=[5, 5]) == pytest.approx([0, 0])


def test_a_call_above_the_limit_goes_once_the_minute_is_empty() -> None:
    assert turns(Limits(tpm=100), [500, 500]) == pytest.approx([0, 60])


def test_a_pause_holds_everybody() -> None:
    clock = Clock()

    async def take() -> None:
        pacer = Pacer(Limits(), clock=clock, sleep=clock.sleep)
        pacer.pause(7)
        await pacer.turn(1)

    asyncio.run(take())
    assert clock.now == 107.0


def test_a_reservation_counts_the_prompt_and_the_whole_generation() -> None:
    assert estimated_tokens([{"role": "user", "content": "x" * 30}], 16) == 26


TRANSIENT = Outcome(Status.FAILED_TRANSIENT)


def test_waits_grow_are_jittered_and_end_with_the_attempts() -> None:
    policy = RetryPolicy(attempts=5, base_s=1, cap_s=4)
    for attempt, most in [(1, 1), (2, 2), (3, 4), (4, 4)]:
        waits = [policy.wait_s(TRANSIENT, attempt, 0) or 0.0 for _ in range(200)]
        assert 0 <= min(waits) < most / 4 < most * 3 / 4 < max(waits) <= most
    assert policy.wait_s(TRANSIENT, 5, 0) is None


def test_no_wait_is_shorter_than_retry_after_and_a_long_one_means_cooling() -> None:
    policy = RetryPolicy(retry_after_cap_s=60)
    asked = Outcome(Status.FAILED_TRANSIENT, retry_after_s=30)
    assert 30 <= (policy.wait_s(asked, 1, 0) or 0) <= 31
    long = Outcome(Status.FAILED_TRANSIENT, retry_after_s=61)
    assert policy.cooling(long)
    assert policy.wait_s(long, 1, 0) is None


def test_no_call_starts_past_the_deadline_and_only_weather_is_retried() -> None:
    assert RetryPolicy(deadline_s=10).wait_s(TRANSIENT, 1, 10.5) is None
    assert RetryPolicy().wait_s(Outcome(Status.FAILED_FATAL), 1, 0) is None
    assert RetryPolicy().wait_s(Outcome(Status.TRUNCATED), 1, 0) is None
