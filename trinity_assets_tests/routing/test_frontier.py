"""The hull, AIQ and APGR of policies whose values can be computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from trinity_assets.errors import TrainingError
from trinity_assets.routing.frontier import aiq, apgr, non_decreasing_hull, strong_share_curve


def hull(*points: tuple[float, float]) -> list[tuple[float, float]]:
    costs, qualities = non_decreasing_hull(*np.array(points).T)
    return list(zip(costs.tolist(), qualities.tolist(), strict=True))


class TestHull:
    def test_what_lies_below_a_mixture_is_not_on_it(self):
        assert hull((1, 0.2), (2, 0.3), (3, 0.8)) == [(1, 0.2), (3, 0.8)]
        assert hull((1, 0.2), (2, 0.6), (3, 0.8)) == [(1, 0.2), (2, 0.6), (3, 0.8)]

    def test_it_never_falls(self):
        assert hull((1, 0.5), (2, 0.9), (3, 0.7), (4, 0.9)) == [(1, 0.5), (2, 0.9)]

    def test_of_equal_costs_the_better_one_stands(self):
        assert hull((2, 0.1), (1, 0.3), (1, 0.4), (2, 0.9)) == [(1, 0.4), (2, 0.9)]

    def test_points_on_a_line_are_its_ends(self):
        assert hull((0, 0.0), (1, 0.5), (2, 1.0)) == [(0, 0.0), (2, 1.0)]

    def test_it_lies_above_every_point(self):
        generator = np.random.default_rng(0)
        costs, qualities = generator.random(50), generator.random(50)
        at, height = non_decreasing_hull(costs, qualities)
        assert (np.interp(costs, at, height) >= qualities - 1e-12).all()
        assert (np.diff(height) > 0).all()
        slopes = np.diff(height) / np.diff(at)
        assert (np.diff(slopes) < 0).all()

    @pytest.mark.parametrize("costs", [[], [1.0, np.nan], [np.inf, 1.0]])
    def test_unknown_costs_have_no_frontier(self, costs):
        with pytest.raises(TrainingError, match="have no frontier"):
            non_decreasing_hull(np.array(costs), np.ones(len(costs)))


class TestAIQ:
    def test_by_hand(self):
        costs, qualities = np.array([1.0, 2.0, 3.0]), np.array([0.2, 0.6, 0.8])
        assert aiq(costs, qualities) == pytest.approx((0.4 + 0.7) / 2)

    def test_beyond_the_dearest_policy_quality_stays(self):
        costs, qualities = np.array([1.0, 2.0]), np.array([0.2, 0.6])
        assert aiq(costs, qualities, (1.0, 4.0)) == pytest.approx((0.4 + 2 * 0.6) / 3)

    def test_below_the_cheapest_policy_a_share_of_the_tasks_is_answered(self):
        assert aiq(np.array([2.0]), np.array([0.8]), (1.0, 3.0)) == pytest.approx((0.6 + 0.8) / 2)

    def test_part_of_the_range(self):
        costs, qualities = np.array([0.0, 4.0]), np.array([0.0, 0.8])
        assert aiq(costs, qualities, (1.0, 2.0)) == pytest.approx(0.3)

    def test_the_order_and_the_unit_of_costs_do_not_matter(self):
        generator = np.random.default_rng(0)
        costs, qualities = generator.random(9), generator.random(9)
        assert aiq(costs[::-1], qualities[::-1]) == pytest.approx(aiq(costs, qualities))
        assert aiq(1000 * costs, qualities) == pytest.approx(aiq(costs, qualities))

    def test_one_price_has_no_range(self):
        assert aiq(np.array([1.0, 1.0]), np.array([0.2, 0.6])) is None


class TestAPGR:
    WEAK, STRONG = np.array([1.0, 0.0, 0.0, 1.0]), np.array([1.0, 1.0, 1.0, 1.0])

    def test_the_curve_of_a_perfect_preference(self):
        shares, qualities = strong_share_curve(np.array([0.1, 0.9, 0.8, 0.2]), self.WEAK, self.STRONG)
        np.testing.assert_array_equal(shares, [0, 0.25, 0.5, 0.75, 1])
        np.testing.assert_array_equal(qualities, [0.5, 0.75, 1, 1, 1])
        # PGR is 0, 1/2, 1, 1, 1.
        assert apgr(shares, qualities, 0.5, 1.0) == pytest.approx(0.25 * (0.25 + 0.75 + 1 + 1))

    def test_no_preference_is_chance(self):
        shares, qualities = strong_share_curve(np.zeros(4), self.WEAK, self.STRONG)
        np.testing.assert_array_equal(shares, [0, 1])
        assert apgr(shares, qualities, 0.5, 1.0) == 0.5

    def test_the_worst_preference_is_the_mirror_of_the_best(self):
        preference = np.array([0.1, 0.9, 0.8, 0.2])
        best, worst = (
            apgr(*strong_share_curve(sign * preference, self.WEAK, self.STRONG), 0.5, 1.0) for sign in (1, -1)
        )
        assert best is not None and worst is not None
        assert best + worst == pytest.approx(1)

    def test_the_mean_of_many_shares_is_the_integral(self):
        generator = np.random.default_rng(0)
        weak, strong = (generator.random((2, 4000)) < [[0.5], [0.8]]).astype(float)
        preference = strong - weak + generator.normal(size=4000)
        shares, qualities = strong_share_curve(preference, weak, strong)
        ends = weak.mean(), strong.mean()
        tenths = (np.arange(10) + 0.5) / 10
        recovered = (np.interp(tenths, shares, qualities) - ends[0]) / (ends[1] - ends[0])
        assert apgr(shares, qualities, *ends) == pytest.approx(recovered.mean(), abs=0.005)

    def test_points_come_in_any_order_and_the_two_workers_are_added(self):
        assert apgr(np.array([0.75, 0.5]), np.array([0.9, 0.8]), 0.4, 0.9) == pytest.approx(
            0.5 * 0.4 + 0.25 * 0.9 + 0.25 * 1.0
        )

    def test_there_is_no_gap_to_recover_from_a_worker_that_is_as_good(self):
        assert apgr(np.array([0.5]), np.array([0.7]), 0.6, 0.6) is None
        assert apgr(np.array([0.5]), np.array([0.7]), 0.6, 0.5) is None
