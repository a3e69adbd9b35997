"""What holds of every trainer and objective, whatever the table."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trinity_assets.errors import TrainingError
from trinity_assets.routing.objective import TableObjective, mirrored_rewards, route
from trinity_assets.routing.specs import ConstantSettings, RidgeSettings, SepCMAESSettings
from trinity_assets.routing.trainers import constant, ridge, sep_cma_es
from trinity_assets_tests.routing.planted import features

TRAINERS = {
    "ridge": lambda objective: ridge.train(objective, RidgeSettings()),
    "sep_cma_es": lambda objective: sep_cma_es.train(objective, SepCMAESSettings(generations=4, population=6)),
    "constant": lambda objective: constant.train(objective, ConstantSettings()),
}

quick = settings(max_examples=25, deadline=None, derandomize=True)


@st.composite
def tables(draw, missing: bool = True) -> TableObjective:
    """A table in which every worker has a known score, of fewer or of more tasks than features."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, hidden, workers = draw(st.integers(12, 40)), draw(st.integers(2, 30)), draw(st.integers(2, 5))
    scores = generator.integers(0, draw(st.integers(2, 4)), (n, workers)) / 3
    if missing and draw(st.booleans()):
        holes = generator.random(scores.shape) < 0.3
        holes[np.arange(n) % workers == 0] = False
        scores[holes] = np.nan
    return TableObjective(features(n, hidden, int(generator.integers(1000))), scores, np.arange(n) % 3)


def some_heads(objective: TableObjective, count: int = 5) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((count, *objective.shape)).astype(np.float32)


def with_scores(objective: TableObjective, scores: np.ndarray) -> TableObjective:
    return TableObjective(objective.features, scores, objective.folds)


@quick
@given(tables(), st.randoms(use_true_random=False))
def test_permuting_workers_permutes_the_head(objective, random):
    order = list(range(objective.shape[0]))
    random.shuffle(order)
    permuted = with_scores(objective, objective.scores[:, order])
    heads = some_heads(objective)
    np.testing.assert_allclose(permuted(heads[:, order]), objective(heads), atol=1e-6)
    head, turned = (TRAINERS["ridge"](one) for one in (objective, permuted))
    assert turned.record.chosen == head.record.chosen
    np.testing.assert_allclose(turned.weights, head.weights[order], rtol=1e-3, atol=1e-5)


@quick
@given(tables(), st.sampled_from([2.0**-20, 0.25, 8.0, 2.0**20]))
def test_rescaling_a_head_changes_nothing(objective, scale):
    heads = some_heads(objective)
    np.testing.assert_array_equal(objective(scale * heads), objective(heads))
    for train in TRAINERS.values():
        weights = train(objective).weights
        np.testing.assert_array_equal(
            route(objective.features, np.float32(scale) * weights), route(objective.features, weights)
        )


@quick
@given(tables(), st.integers(0, 4))
def test_a_duplicated_worker_never_lowers_the_result(objective, position):
    twin = position % objective.shape[0]
    doubled = with_scores(objective, np.hstack([objective.scores, objective.scores[:, [twin]]]))
    heads = some_heads(objective)
    np.testing.assert_allclose(doubled(np.concatenate([heads, heads[:, [twin]]], axis=1)), objective(heads), atol=1e-6)
    for name in ("ridge", "constant"):
        assert TRAINERS[name](doubled).reward >= TRAINERS[name](objective).reward - 1e-6


@quick
@given(tables(missing=False))
def test_an_unknown_worker_never_wins(objective):
    unknown = with_scores(objective, np.hstack([np.full((len(objective.scores), 1), np.nan), objective.scores]))
    heads = np.concatenate([100 * np.abs(some_heads(objective)[:, :1]), some_heads(objective)], axis=1)
    np.testing.assert_allclose(unknown(heads), objective(heads[:, 1:]), atol=1e-6)
    best = TRAINERS["constant"](objective).record.constant
    assert best is not None
    assert TRAINERS["constant"](unknown).record.constant == best + 1
    for name in ("ridge", "sep_cma_es"):
        with pytest.raises(TrainingError, match=r"workers \[0\].* no known score"):
            TRAINERS[name](unknown)


@quick
@given(tables())
def test_equal_inputs_give_equal_heads(objective):
    again = with_scores(objective, objective.scores.copy())
    for train in TRAINERS.values():
        first, second = train(objective), train(again)
        np.testing.assert_array_equal(first.weights, second.weights)
        assert first.record == second.record


@quick
@given(tables())
def test_equal_logits_go_to_the_earliest_known_worker(objective):
    known = ~np.isnan(objective.scores)
    expected = objective.scores[np.arange(len(known)), known.argmax(axis=1)].mean()
    zero = np.zeros((1, *objective.shape), dtype=np.float32)
    assert float(objective(zero)[0]) == pytest.approx(expected)
    assert mirrored_rewards(objective, zero[0], zero).tolist() == pytest.approx([expected, expected])


@quick
@given(tables())
def test_mirrored_pairs_are_rewarded_as_heads_are(objective):
    mean, *steps = some_heads(objective, 4)
    both = np.concatenate([mean + np.stack(steps), mean - np.stack(steps)])
    np.testing.assert_allclose(mirrored_rewards(objective, mean, np.stack(steps)), objective(both), atol=1e-6)
    narrow, basis = objective.reduced()
    if basis is not None:
        np.testing.assert_allclose(
            mirrored_rewards(narrow, mean @ basis.T, np.stack(steps) @ basis.T), objective(both), atol=1e-6
        )
