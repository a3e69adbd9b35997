"""When a failed call is made again, and when a provider that does not answer is probed."""

from __future__ import annotations

from trinity_assets.workers.outcomes import Outcome, Status
from trinity_assets.workers.retrying import RetryPolicy

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


def test_a_call_that_took_all_of_its_time_is_made_again_once() -> None:
    slow = Outcome(Status.FAILED_TRANSIENT, error_class="timeout")
    assert RetryPolicy().wait_s(slow, 1, 45.0) is not None
    assert RetryPolicy().wait_s(slow, 2, 90.0) is None
    assert RetryPolicy().wait_s(Outcome(Status.FAILED_TRANSIENT, error_class="request_timeout"), 2, 1.0) is not None


def test_probes_are_made_at_growing_distances() -> None:
    policy = RetryPolicy(base_s=1, cap_s=5)
    assert [policy.probe_wait_s(failed) for failed in range(5)] == [1, 2, 4, 5, 5]
