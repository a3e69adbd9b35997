"""A tier counts only if it really holds; where none does, untrusted code is not run and the message says what to do."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator

import pytest

from trinity_assets.errors import SandboxError
from trinity_assets.sandbox import landlock, probing, tiers
from trinity_assets.sandbox.probing import find_sandbox, tier_fault
from trinity_assets.sandbox.tiers import BUBBLEWRAP, LADDER, LANDLOCK, UNSANDBOXED, Tier
from trinity_assets_tests.needed import needed_tier


@pytest.fixture(autouse=True)
def probed_anew() -> Iterator[None]:
    find_sandbox.cache_clear()
    yield
    find_sandbox.cache_clear()


def ladder(monkeypatch: pytest.MonkeyPatch, *rungs: Tier) -> None:
    monkeypatch.setattr(probing, "LADDER", {tier.name: tier for tier in rungs})


@pytest.mark.skipif(sys.platform != "linux", reason="tiers of Linux")
def test_the_strongest_tier_that_holds_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    needed_tier("bubblewrap")
    needed_tier("landlock")
    assert find_sandbox().tier is BUBBLEWRAP
    assert find_sandbox().described() == f"bubblewrap, Python {platform.python_version()}"
    find_sandbox.cache_clear()
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert find_sandbox().tier is LANDLOCK


def test_it_is_probed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    probes: list[str] = []
    monkeypatch.setattr(probing, "tier_fault", lambda tier: probes.append(tier.name))
    assert find_sandbox() is find_sandbox()
    assert probes == ["bubblewrap"]


def test_a_tier_that_confines_nothing_is_found_out() -> None:
    pretender = Tier("pretender", True, UNSANDBOXED.start)
    fault = tier_fault(pretender)
    assert fault is not None
    assert fault.startswith(
        "it leaves open: reading a file of yours, your home directory, writing beside it, connecting to a local port"
    )
    assert "more memory" not in fault  # the limits hold in every tier


def test_nothing_is_run_where_nothing_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    ladder(monkeypatch, BUBBLEWRAP, LANDLOCK, UNSANDBOXED)
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr(landlock, "landlock_version", lambda: 0)
    with pytest.raises(SandboxError) as caught:
        find_sandbox()
    message = str(caught.value)
    assert message.startswith("no sandbox holds on this machine, so untrusted code is not run:\n")
    assert "bubblewrap: bubblewrap is not installed" in message
    assert "landlock: the kernel offers no Landlock" in message
    assert "\n  unsandboxed:" not in message
    assert "allow_unsandboxed: true" in message
    find_sandbox.cache_clear()
    assert find_sandbox(allow_unsandboxed=True).tier is UNSANDBOXED


@pytest.mark.usefixtures("sandbox")
def test_a_sandbox_is_preferred_even_where_none_is_asked_for() -> None:
    assert find_sandbox(allow_unsandboxed=True).tier.confines


def test_only_the_last_rung_confines_nothing() -> None:
    *others, last = LADDER.values()
    assert last is UNSANDBOXED
    assert not last.confines
    assert all(tier.confines for tier in others)


def test_the_profile_for_macos_denies_by_default_and_names_the_interpreter() -> None:
    profile = tiers.macos_profile()
    assert profile.splitlines()[:2] == ["(version 1)", "(deny default)"]
    for refused in ("(deny network*)", "(deny process-fork)", "(deny signal)"):
        assert refused in profile
    assert f'(literal "{tiers.interpreter()[0]}")' in profile
    assert profile.count("(") == profile.count(")")
    assert "file-write*" not in profile
