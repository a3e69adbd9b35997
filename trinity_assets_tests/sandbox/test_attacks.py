"""No attack gets hold of anything, each ends as it should, and nothing of it is left: on every tier, for every user."""

from __future__ import annotations

import functools
import json
import sys
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from trinity_assets_tests.needed import missing
from trinity_assets_tests.sandbox import attacking, attacks
from trinity_assets_tests.sandbox.users import ORDINARY_USER, run_module

TIERS = ["bubblewrap", "landlock"] if sys.platform == "linux" else ["sandbox_exec"]
USERS = ["me", "ordinary"]


def attacked(tier: str, user: str) -> dict[str, str]:
    result: dict[str, str] = json.loads(run_module("trinity_assets_tests.sandbox.attacking", tier, user=user))
    return result


@functools.cache
def all_attacked() -> dict[tuple[str, str], Future[dict[str, str]]]:
    """Every tier for every user, side by side: much of an attack is waiting for a limit."""
    pairs = [(tier, user) for tier in TIERS for user in USERS]
    with ThreadPoolExecutor(len(pairs)) as pool:
        return {pair: pool.submit(attacked, *pair) for pair in pairs}


def outcomes(tier: str, user: str) -> dict[str, str]:
    """What came of every attack; they run once for each tier and user."""
    result = all_attacked()[tier, user].result()
    if fault := result.get(attacking.DOES_NOT_HOLD):
        missing(f"the sandbox {tier} does not hold on this machine for the user `{user}`: {fault}")
    return result


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("attack", attacks.CONTAINED)
def test_an_attack_gets_hold_of_nothing(attack: str, tier: str, user: str) -> None:
    assert outcomes(tier, user)[attack] == "contained"


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("attack", attacks.ENDED)
def test_a_program_that_goes_on_is_ended_and_is_at_fault_itself(attack: str, tier: str, user: str) -> None:
    assert outcomes(tier, user)[attack].partition(":")[0] == attacks.ENDED[attack][1]


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("tier", TIERS)
def test_nothing_outside_has_changed(tier: str, user: str) -> None:
    after = outcomes(tier, user)
    assert after["what was heard outside"] == ""
    assert after["the secret file afterwards"] == attacking.SECRET
    assert after["files left"] == ""


UNCONFINED = ["the secret file", "TCP on loopback", "UDP", "unix sockets", "vfork, clone and spawn"]
"""What does no harm to a machine when it succeeds. A bare process, too, is started with an empty environment."""


@pytest.mark.parametrize("attack", UNCONFINED)
def test_the_attacks_do_get_through_where_nothing_stops_them(attack: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attacks, "CONTAINED", {attack: attacks.CONTAINED[attack]})
    monkeypatch.setattr(attacks, "ENDED", {})
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("PROVIDER_API_KEY", "")
    assert attacking.main("unsandboxed")[attack].startswith("got ")


@pytest.mark.parametrize("tier", TIERS)
def test_the_second_run_is_another_users(tier: str) -> None:
    assert outcomes(tier, "ordinary")["user"] == str(ORDINARY_USER)
