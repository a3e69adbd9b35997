"""The tests behind a warning, against hand computation and scipy."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest

from trinity_assets.grading.significance import exceeds_floor_p, false_discovery_adjusted, mcnemar_p


@pytest.mark.parametrize(
    ("gained", "lost", "p"),
    [
        (0, 0, 1.0),
        (1, 0, 1.0),
        (0, 6, 2 / 64),
        (5, 0, 2 / 32),
        (1, 9, 2 * 11 / 1024),
        (4, 4, 1.0),
    ],
)
def test_mcnemar_by_hand(gained: int, lost: int, p: float) -> None:
    assert mcnemar_p(gained, lost) == p


def test_mcnemar_is_the_sign_test_of_scipy() -> None:
    from scipy.stats import binomtest

    for gained in range(0, 25, 3):
        for lost in range(1, 25, 2):
            assert mcnemar_p(gained, lost) == pytest.approx(binomtest(gained, gained + lost).pvalue, rel=1e-12)
    for gained, lost in ((1500, 1300), (2550, 2450), (2500, 2500), (9800, 10200), (30, 4970)):
        assert mcnemar_p(gained, lost) == pytest.approx(binomtest(gained, gained + lost).pvalue, rel=1e-12, abs=0)


def test_mcnemar_is_exact_of_thousands_of_pairs() -> None:
    for gained, lost in ((0, 1), (7, 7), (120, 90), (700, 650), (1100, 1000)):
        n = gained + lost
        ways = sum(comb(n, k) for k in range(min(gained, lost) + 1))
        assert mcnemar_p(gained, lost) == min(1.0, float(Fraction(2 * ways, 2**n)))


@pytest.mark.parametrize(
    ("changed", "pairs", "floor_changed", "floor_pairs", "p"),
    [
        (2, 2, 0, 2, 1 / 6),  # of C(4, 2) ways to place two changes, one is both here
        (3, 4, 1, 4, 17 / 70),  # Fisher's tea: (16 + 1) of 70
        (0, 5, 0, 5, 1.0),
        (5, 5, 0, 0, 1.0),
        (0, 0, 1, 5, 1.0),
    ],
)
def test_the_excess_over_the_floor_by_hand(
    changed: int, pairs: int, floor_changed: int, floor_pairs: int, p: float
) -> None:
    assert exceeds_floor_p(changed, pairs, floor_changed, floor_pairs) == pytest.approx(p, rel=1e-15)


def test_the_excess_over_the_floor_is_fishers_of_scipy() -> None:
    from scipy.stats import fisher_exact

    generator = np.random.default_rng(0)
    for _ in range(60):
        pairs, floor_pairs = (int(generator.integers(1, most)) for most in (90, 40))
        changed, floor_changed = (int(generator.integers(size + 1)) for size in (pairs, floor_pairs))
        table = [[changed, pairs - changed], [floor_changed, floor_pairs - floor_changed]]
        expected = fisher_exact(table, alternative="greater").pvalue
        assert exceeds_floor_p(changed, pairs, floor_changed, floor_pairs) == pytest.approx(expected, rel=1e-9)


def test_a_floor_known_from_few_pairs_proves_little() -> None:
    assert exceeds_floor_p(20, 100, 0, 5) > 0.3
    assert exceeds_floor_p(20, 100, 0, 40) < 0.001


def test_control_of_false_discoveries_by_hand() -> None:
    # The example of Benjamini and Hochberg (1995), section 3.2: of 15 tests, the four smallest stand at 0.05.
    p = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528]
    p += [0.7590, 1.0]
    adjusted = false_discovery_adjusted(p)
    assert [value <= 0.05 for value in adjusted] == [True] * 4 + [False] * 11
    assert adjusted[:2] == [0.0001 * 15, 0.0004 * 15 / 2]
    assert false_discovery_adjusted([]) == []


def test_control_of_false_discoveries_is_that_of_scipy() -> None:
    from scipy.stats import false_discovery_control

    generator = np.random.default_rng(0)
    for size in range(1, 12):
        p = (generator.random(size) ** 3).tolist()
        assert false_discovery_adjusted(p) == pytest.approx(np.asarray(false_discovery_control(p)).tolist(), rel=1e-12)
