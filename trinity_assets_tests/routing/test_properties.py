"""What holds of every trainer, objective and evaluation, whatever the table."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trinity_assets.errors import TrainingError
from trinity_assets.routing.crossfit import TrainTasks, cross_fit
from trinity_assets.routing.evaluation import evaluate
from trinity_assets.routing.gate import judge
from trinity_assets.routing.head import best_single_on_train
from trinity_assets.routing.headroom import headroom
from trinity_assets.routing.objective import TableObjective, mirrored_rewards, route
from trinity_assets.routing.results import Evaluation
from trinity_assets.routing.specs import TRAINERS as REGISTERED
from trinity_assets.routing.specs import ConstantSettings, GateSpec, RidgeSettings, SepCMAESSettings
from trinity_assets.routing.table import score_matrix
from trinity_assets.routing.trainers import constant, ridge, sep_cma_es
from trinity_assets_tests.routing.planted import WORKERS, features, learners_of, planted_scores, table_of

TRAINERS = {
    "ridge": lambda objective: ridge.train(objective, RidgeSettings()),
    "sep_cma_es": lambda objective: sep_cma_es.train(objective, SepCMAESSettings(generations=4, population=6)),
    "constant": lambda objective: constant.train(objective, ConstantSettings()),
}


def test_every_trainer_is_held_to_these():
    assert TRAINERS.keys() == REGISTERED.keys()


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
    prices = np.tile(np.arange(1.0, 1 + len(order)), (len(objective.scores), 1))  # or ties would go by the place
    always, other = (
        TRAINERS["constant"](TableObjective(objective.features, one.scores, objective.folds, costs))
        for one, costs in ((objective, prices), (permuted, prices[:, order]))
    )
    assert order[other.record.chosen["constant"]] == always.record.constant
    np.testing.assert_array_equal(other.weights, always.weights[order])


@settings(quick, max_examples=8)
@given(tables(missing=False), st.randoms(use_true_random=False))
def test_a_search_whose_draws_are_permuted_as_the_workers_finds_the_permuted_head(objective, random):
    """Its draws go by the worker's place, so permuting the workers alone gives it other draws."""
    order = list(range(objective.shape[0]))
    random.shuffle(order)
    drawn = np.random.default_rng

    class Permuted:
        def __init__(self, seed: int) -> None:
            self._generator = drawn(seed)

        def standard_normal(self, size: tuple[int, int]) -> np.ndarray:
            by_worker = self._generator.standard_normal(size).reshape(size[0], len(order), -1)
            return by_worker[:, order].reshape(size)

    head = TRAINERS["sep_cma_es"](objective)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np.random, "default_rng", Permuted)
        turned = TRAINERS["sep_cma_es"](with_scores(objective, objective.scores[:, order]))
    np.testing.assert_allclose(turned.weights, head.weights[order], rtol=1e-3, atol=1e-5)
    assert turned.reward == pytest.approx(head.reward)


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


def test_a_duplicated_worker_lowers_no_search_but_by_its_luck():
    """A search of so many more rows draws otherwise; over several tables it is neither better nor worse."""
    lost = []
    for seed in range(12):
        drawn = features(60, 6, seed)
        scores = planted_scores(drawn, 3, noise=0.1, seed=seed)[0]
        single, doubled = (
            sep_cma_es.train(TableObjective(drawn, columns, np.arange(60) % 3), SepCMAESSettings(generations=30))
            for columns in (scores, scores[:, [0, 1, 2, 0]])
        )
        lost.append(single.reward - doubled.reward)
    assert np.mean(lost) < 2 * np.std(lost, ddof=1) / len(lost) ** 0.5


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


class TestEvaluations:
    """The same of what is said of heads: by policy, and by the gate."""

    N = 240

    @pytest.fixture
    def drawn(self) -> np.ndarray:
        return features(self.N, 6)

    @pytest.fixture
    def scores(self, drawn) -> np.ndarray:
        return planted_scores(drawn, 3, noise=0.15)[0]

    @pytest.fixture
    def head(self, drawn, scores) -> np.ndarray:
        return np.linalg.lstsq(drawn.astype(float), scores, rcond=None)[0].T

    @staticmethod
    def judged(table: pd.DataFrame, drawn: np.ndarray, head: np.ndarray, workers: list[str]) -> Evaluation:
        recipes = {name: learners_of(name) for name in ("ridge", "constant")}
        return evaluate(table, drawn, {"ridge": head}, workers, recipes=recipes, resamples=100)

    def test_the_order_of_the_pool_does_not_matter(self, drawn, scores, head):
        table, order = table_of(scores, WORKERS), [2, 0, 1]
        turned = [WORKERS[place] for place in order]
        before, after = self.judged(table, drawn, head, WORKERS), self.judged(table, drawn, head[order], turned)
        assert after.reference_worker == before.reference_worker
        assert after.gates == before.gates
        for one, other in zip(before.policies, after.policies, strict=True):
            assert other.shares == pytest.approx(one.shares)
            apart = {"shares", "gap_closed"}
            assert other.model_dump(exclude=apart) == pytest.approx(one.model_dump(exclude=apart))
            assert (other.gap_closed is None) == (one.gap_closed is None)
            if one.gap_closed and other.gap_closed:
                assert other.gap_closed.model_dump() == pytest.approx(one.gap_closed.model_dump())
        assert headroom(table, turned, resamples=50).oracle == headroom(table, WORKERS, resamples=50).oracle

    @pytest.mark.parametrize("scale", [2.0**-20, 8.0])
    def test_the_scale_of_a_head_does_not_matter(self, drawn, scores, head, scale):
        table = table_of(scores, WORKERS)
        assert self.judged(table, drawn, scale * head, WORKERS) == self.judged(table, drawn, head, WORKERS)

    def test_a_duplicated_worker_lowers_nothing(self, drawn, scores, head):
        doubled = table_of(np.hstack([scores, scores[:, [1]]]), [*WORKERS, "twin"])
        before = self.judged(table_of(scores, WORKERS), drawn, head, WORKERS)
        after = self.judged(doubled, drawn, np.vstack([head, head[1]]), [*WORKERS, "twin"])
        for name in ("ridge", "best_single", "lookup", "knn", "hindsight", "oracle"):
            assert after.policy(name).accuracy == pytest.approx(before.policy(name).accuracy)
            assert after.policy(name).verdict == before.policy(name).verdict
        for one, other in zip(before.gates, after.gates, strict=True):
            assert one.accuracy is not None and other.accuracy is not None
            assert other.passed == one.passed and other.accuracy >= one.accuracy - 0.01
            assert other.reference_accuracy == pytest.approx(one.reference_accuracy)

    def test_a_worker_of_which_nothing_is_known_is_chosen_by_nothing(self, drawn, scores, head):
        """It leaves no task to compare on, so none is judged; what can choose without it does."""
        holed = table_of(np.hstack([np.full((self.N, 1), np.nan), scores]), ["nemo", *WORKERS])
        with pytest.raises(TrainingError, match="0 complete ones to test on"):
            self.judged(holed, drawn, np.vstack([head[0], head]), ["nemo", *WORKERS])
        tasks = TrainTasks(
            drawn,
            score_matrix(holed, ["nemo", *WORKERS]),
            np.ones((self.N, 4)),
            np.arange(self.N) % 5,
            np.arange(self.N),
        )
        fit = cross_fit(tasks, learners_of("ridge")[0])
        assert not judge("ridge", tasks, fit, GateSpec(saving=0.1), resamples=50, seed=0).passed
        assert best_single_on_train(holed, ["nemo", *WORKERS]).worker in WORKERS
        found = headroom(holed, ["nemo", *WORKERS], resamples=50)
        assert found.nothing_to_route is not None and not found.shown

    def test_a_worker_that_is_unknown_in_train_is_chosen_by_nothing(self, drawn, scores, head):
        table = table_of(np.hstack([np.ones((self.N, 1)), scores]), ["nemo", *WORKERS])
        table.loc[table["split"] == "train", "score__nemo"] = np.nan
        evaluation = self.judged(table, drawn, np.vstack([np.zeros(6), head]), ["nemo", *WORKERS])
        assert evaluation.reference_worker in WORKERS
        for name in ("best_single", "lookup", "knn"):
            assert evaluation.policy(name).shares["nemo"] == 0
        assert not any(gate.passed for gate in evaluation.gates)
