import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from trinity_assets.errors import ArtifactError, TrainingError
from trinity_assets.routing.baselines import Side, baselines, best_worker
from trinity_assets.routing.completeness import Dropped
from trinity_assets.routing.evaluation import evaluate
from trinity_assets.routing.objective import training_objective
from trinity_assets.routing.power import detectable_difference
from trinity_assets.routing.report import markdown_report, text_report
from trinity_assets.routing.results import Evaluation, read_evaluation, write_evaluation
from trinity_assets.routing.specs import SepCMAESSettings
from trinity_assets.routing.statistics import paired_bootstrap, verdict
from trinity_assets.routing.table import score_matrix
from trinity_assets.routing.trainers import sep_cma_es
from trinity_assets.spec import digest
from trinity_assets.store.artifacts import ArtifactStore
from trinity_assets_tests.routing.planted import FLATTERED, WORKERS, features, learners_of, planted_scores, table_of

NAN = np.nan


def an_evaluation(heads: dict[str, np.ndarray] | None = None, n: int = 400, missing: int = 0) -> Evaluation:
    drawn = features(n, 8)
    scores, _ = planted_scores(drawn, 3)
    table = table_of(scores, WORKERS)
    table.loc[table.index[table["split"] == "test"][:missing], "score__bob"] = NAN
    return evaluate(table, drawn, heads or {}, WORKERS, resamples=500)


def always(worker: int) -> np.ndarray:
    """The head that picks ``worker`` for every planted feature, whose first component is positive."""
    head = np.zeros((3, 8))
    head[worker, 0] = 1
    return head


class TestStatistics:
    def test_the_interval_of_a_mean_is_the_textbook_one(self):
        differences = np.random.default_rng(0).normal(0.1, 1.0, (400, 1))
        low, high = paired_bootstrap(differences, 4000, seed=0)
        error = differences.std(ddof=1) / 20
        assert low[0] == pytest.approx(differences.mean() - 1.96 * error, abs=0.1 * error)
        assert high[0] == pytest.approx(differences.mean() + 1.96 * error, abs=0.1 * error)

    def test_two_tasks_by_hand(self):
        # The mean of two draws from {0, 1} is 0, 1/2 or 1 with probability 1/4, 1/2, 1/4: both tails exceed 2.5%.
        low, high = paired_bootstrap(np.array([[0.0], [1.0]]), 2000, seed=0)
        assert (low[0], high[0]) == (0.0, 1.0)

    def test_equal_columns_get_equal_intervals_and_seeds_decide(self):
        differences = np.tile(np.random.default_rng(0).normal(size=(50, 1)), 2)
        low, high = paired_bootstrap(differences, 300, seed=1)
        assert (low[0], high[0]) == (low[1], high[1])
        np.testing.assert_array_equal(paired_bootstrap(differences, 300, seed=1), (low, high))
        assert paired_bootstrap(differences, 300, seed=2)[0][0] != low[0]

    @pytest.mark.parametrize(
        ("low", "high", "word"),
        [(0.01, 0.1, "win"), (-0.1, -0.01, "loss"), (-0.1, 0.1, "tie"), (0.0, 0.0, "tie"), (0.0, 0.1, "tie")],
    )
    def test_verdict(self, low, high, word):
        assert verdict(low, high) == word

    def test_detectable_difference(self):
        differences = np.zeros(345)
        differences[:38] = [1, -1] * 19
        assert detectable_difference(differences) == pytest.approx(0.05, abs=0.001)
        assert np.isnan(detectable_difference(np.zeros(5)))


class TestBaselines:
    def test_ties_go_to_the_lowest_cost_then_to_pool_order(self):
        scores = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
        assert best_worker(scores, np.array([[3.0, 2.0, 2.0]])) == 1
        assert best_worker(scores, np.array([[2.0, 2.0, 2.0]])) == 0
        assert best_worker(scores, np.array([[NAN, 5.0, 6.0]])) == 1
        assert best_worker(scores, np.full((1, 3), NAN)) == 0

    def test_unknown_scores_are_left_out_of_means(self):
        assert best_worker(np.array([[0.5, NAN], [0.5, 1.0], [0.5, NAN]]), np.ones((3, 2))) == 1
        assert best_worker(np.array([[NAN, 0.0]]), np.ones((1, 2))) == 1

    def test_each_policy_on_a_small_table(self):
        train = Side(
            np.array([[1.0, 0], [1, 0.1], [0, 1], [0.1, 1]]),
            np.array([[1.0, 0], [1, 0], [0, 1], [1, 1]]),
            np.tile([2.0, 1.0], (4, 1)),
            np.array(["p", "p", "q", "q"]),
        )
        test = Side(
            np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]),
            np.array([[0.0, 0.5], [0.0, 1.0], [1.0, 1.0]]),
            np.tile([2.0, 1.0], (3, 1)),
            np.array(["p", "q", "new"]),
        )
        by_name = {policy.name: policy for policy in baselines(train, test)}
        picks = {name: policy.shares.argmax(axis=1).tolist() for name, policy in by_name.items()}
        assert picks["best_single"] == [0, 0, 0]
        assert picks["lookup"] == [0, 1, 0]
        assert picks["hindsight"] == [1, 1, 1]
        assert picks["oracle"] == [1, 1, 1]
        np.testing.assert_array_equal(by_name["random"].values(test.scores), [0.25, 0.5, 1.0])

    def test_the_lookup_asks_the_best_single_worker_where_nothing_is_known(self):
        scores = np.array([[1.0, 0.0], [1.0, 0.0], [NAN, NAN], [NAN, NAN]])
        side = Side(np.eye(4), scores, np.tile([2.0, 1.0], (4, 1)), np.array(["p", "p", "q", "q"]))
        lookup = next(policy for policy in baselines(side, side) if policy.name == "lookup")
        assert lookup.shares.argmax(axis=1).tolist() == [0, 0, 0, 0]

    def test_missing_hard_tasks_flatter_nobody(self):
        scores = np.vstack([FLATTERED, [[1.0, NAN], [1.0, NAN]]])
        assert best_worker(scores, np.ones((8, 2))) == 0
        train = Side(features(8, 3), scores, np.ones((8, 2)), np.array([*"pppppp", "q", "q"]))
        test = Side(features(2, 3), np.ones((2, 2)), np.ones((2, 2)), np.array(["p", "q"]))
        picks = {policy.name: policy.shares.argmax(axis=1).tolist() for policy in baselines(train, test)}
        assert picks["best_single"] == picks["lookup"] == picks["knn"] == [1, 1]

    def test_without_a_complete_task_workers_are_compared_by_what_is_known(self):
        scores = np.array([[NAN, 1.0], [0.5, NAN], [NAN, 0.0], [0.0, NAN], [NAN, NAN]])
        side = Side(np.eye(5), scores, np.ones((5, 2)), np.array([*"ppqqr"]))
        picks = {policy.name: policy.shares.argmax(axis=1).tolist() for policy in baselines(side, side)}
        assert picks["best_single"] == [1] * 5
        assert picks["lookup"] == [1, 1, 0, 0, 1]

    def test_knn_follows_its_neighbourhood(self):
        drawn = np.concatenate([np.tile([4.0, 1.0], (60, 1)), np.tile([1.0, 4.0], (60, 1))])
        scores = np.repeat([[1.0, 0.0], [0.0, 1.0]], 60, axis=0)
        side = Side(drawn, scores, np.ones((120, 2)), np.repeat("p", 120))
        knn = next(policy for policy in baselines(side, side) if policy.name == "knn")
        assert knn.shares.argmax(axis=1).tolist() == [0] * 60 + [1] * 60


class TestEvaluate:
    def test_a_head_that_asks_the_best_single_worker_is_a_tie(self):
        best = an_evaluation().reference_worker
        result = an_evaluation({"ridge": always(WORKERS.index(best))}).policy("ridge")
        assert (result.verdict, result.difference, result.low, result.high) == ("tie", 0, 0, 0)
        assert (result.wins, result.losses, result.detectable) == (0, 0, None)
        assert result.shares[best] == 1

    def test_the_planted_rule_wins_and_equals_the_oracle(self):
        drawn = features(400, 8)
        scores, right = planted_scores(drawn, 3)
        table = table_of(scores, WORKERS)
        head = np.linalg.lstsq(drawn.astype(float), scores, rcond=None)[0].T
        evaluation = evaluate(table, drawn, {"ridge": head}, WORKERS, resamples=500)
        result = evaluation.policy("ridge")
        held_out = (table["split"] == "test").to_numpy()
        picked = (drawn[held_out] @ head.T).argmax(axis=1)
        assert result.accuracy == pytest.approx((picked == right[held_out]).mean())
        assert result.verdict == "win"
        single = WORKERS.index(evaluation.reference_worker)
        assert result.wins - result.losses == round(held_out.sum() * result.difference)
        assert result.wins == ((picked == right[held_out]) & (right[held_out] != single)).sum()
        assert evaluation.policy("oracle").accuracy == 1
        assert evaluation.policy("random").accuracy == pytest.approx(1 / 3)
        assert evaluation.n_test == held_out.sum()
        assert evaluation.n_train == 400 - held_out.sum()

    def test_train_tasks_decide_no_accuracy(self):
        drawn = features(300, 8)
        scores, _ = planted_scores(drawn, 3)
        table = table_of(scores, WORKERS)
        before = evaluate(table, drawn, {"ridge": always(1)}, WORKERS, resamples=200).policy("ridge").accuracy
        table.loc[table["split"] == "train", "score__bob"] = 1.0
        assert evaluate(table, drawn, {"ridge": always(1)}, WORKERS, resamples=200).policy("ridge").accuracy == before

    def test_incomplete_test_tasks_are_left_out_for_everyone_and_counted(self):
        whole, holed = an_evaluation({"ridge": always(0)}), an_evaluation({"ridge": always(0)}, missing=7)
        assert (holed.n_missing, holed.n_test) == (7, whole.n_test - 7)
        assert sum(row.n_test for row in holed.benchmarks) == holed.n_test
        assert "7 more left out for a missing score" in text_report(holed)

    def test_costs_are_expectations_and_unknown_stays_unknown(self):
        drawn = features(100, 8)
        table = table_of(planted_scores(drawn, 3)[0], WORKERS)
        table["cost__cyd"] = NAN
        evaluation = evaluate(table, drawn, {"ridge": always(1)}, WORKERS, resamples=100)
        assert evaluation.policy("ridge").cost_usd == pytest.approx(0.002)
        assert evaluation.policy("random").cost_usd is None

    def test_it_survives_json(self):
        evaluation = an_evaluation({"ridge": always(0)})
        assert Evaluation.model_validate(json.loads(evaluation.model_dump_json())) == evaluation

    def test_what_cannot_be_compared_is_refused(self):
        with pytest.raises(TrainingError, match=r"head ridge has shape \(2, 8\)"):
            an_evaluation({"ridge": np.zeros((2, 8))})
        with pytest.raises(TrainingError, match="not finite"):
            an_evaluation({"ridge": np.full((3, 8), NAN)})
        with pytest.raises(TrainingError, match="0 complete ones"):
            an_evaluation(missing=400)
        with pytest.raises(TrainingError, match="no policy 'lasso'"):
            an_evaluation().policy("lasso")


class TestRetraining:
    """What an evaluation trains by itself: with other seeds, and without a benchmark."""

    @staticmethod
    def two_benchmarks(n: int = 300) -> tuple[pd.DataFrame, np.ndarray]:
        """Two benchmarks of which one asks for the other worker than its features would say on the first."""
        drawn = features(n, 8)
        scores, _ = planted_scores(drawn, 3)
        table = table_of(scores, WORKERS)
        second = np.arange(n) >= n // 2
        table.loc[second, "benchmark"] = "riddles"
        columns = [f"score__{worker}" for worker in WORKERS]
        table.loc[second, columns] = np.roll(scores[second], 1, axis=1)
        return table, drawn

    def test_a_head_is_worth_little_on_a_benchmark_of_another_rule(self):
        table, drawn = self.two_benchmarks()
        recipes = {"ridge": learners_of("ridge", 3)}
        evaluation = evaluate(table, drawn, {}, WORKERS, recipes=recipes, resamples=300)
        assert evaluation.seeds == (), "ridge draws nothing"
        tests = table[table["split"] == "test"].groupby("benchmark").size()
        assert {one.benchmark: one.n_test for one in evaluation.left_out} == tests.to_dict()
        for one in evaluation.left_out:
            train = table[(table["split"] == "train") & (table["benchmark"] != one.benchmark)]
            means = train[[f"score__{worker}" for worker in WORKERS]].mean()
            assert one.reference_worker == WORKERS[int(means.to_numpy().argmax())]
            assert one.accuracy < 0.5 and one.verdict != "win"

    def test_one_benchmark_cannot_be_left_out(self):
        drawn = features(200, 8)
        table = table_of(planted_scores(drawn, 3)[0], WORKERS)
        recipes = {"ridge": learners_of("ridge", 1)}
        assert evaluate(table, drawn, {}, WORKERS, recipes=recipes, resamples=50).left_out == ()

    def test_seeds_are_drawn_again_and_resampled(self):
        drawn = features(300, 8)
        table = table_of(planted_scores(drawn, 3, noise=0.2)[0], WORKERS)
        settings = SepCMAESSettings(generations=4)
        learns = learners_of("sep_cma_es", 3, generations=4)
        objective = training_objective(table, drawn, WORKERS)
        held_out = (table["split"] == "test").to_numpy()
        scores = score_matrix(table, WORKERS)[held_out]
        rows = np.arange(held_out.sum())
        accuracies = [scores[rows, learn(objective).picks(drawn[held_out])].mean() for learn in learns]
        exported = sep_cma_es.train(objective, settings).weights
        evaluation = evaluate(
            table, drawn, {"sep_cma_es": exported}, WORKERS, recipes={"sep_cma_es": learns}, resamples=300
        )
        spread, *others = evaluation.seeds
        assert [one.other for one in evaluation.seeds] == ["best_single", "random", "lookup", "knn"]
        for one in others:
            assert one.difference == pytest.approx(np.mean(accuracies) - evaluation.policy(one.other).accuracy)
        assert (spread.trainer, spread.seeds) == ("sep_cma_es", 3)
        assert (spread.lowest, spread.highest) == (pytest.approx(min(accuracies)), pytest.approx(max(accuracies)))
        assert spread.lowest < spread.highest
        assert spread.difference == pytest.approx(np.mean(accuracies) - evaluation.policy("best_single").accuracy)
        assert spread.low < spread.difference < spread.high
        assert evaluation.policy("sep_cma_es").accuracy == pytest.approx(accuracies[0]), "the exported one is the first"


def test_every_head_is_compared_with_every_policy_that_can_be_run():
    evaluation = an_evaluation({"ridge": always(0), "sep_cma_es": always(1)})
    assert [(one.head, one.other) for one in evaluation.comparisons] == [
        (head, other)
        for head, rival in (("ridge", "sep_cma_es"), ("sep_cma_es", "ridge"))
        for other in (rival, "random", "lookup", "knn")
    ]
    (
        one,
        *_,
    ) = evaluation.comparisons
    first, second = (evaluation.policy(name) for name in ("ridge", "sep_cma_es"))
    assert one.difference == pytest.approx(first.accuracy - second.accuracy)
    assert one.wins - one.losses == round(evaluation.n_test * one.difference)


def test_the_published_checkpoint_is_beaten_or_not_on_the_same_tasks():
    drawn = features(400, 8)
    scores, right = planted_scores(drawn, 3)
    table = table_of(scores, WORKERS)
    published = ("small-0123", np.where(np.arange(400) % 4, right, (right + 1) % 3))
    evaluation = evaluate(table, drawn, {"ridge": always(0)}, WORKERS, published=published, looks=3, resamples=200)
    held_out = (table["split"] == "test").to_numpy()
    incumbent = evaluation.incumbent
    assert incumbent is not None and incumbent.checkpoint == "small-0123"
    assert incumbent.accuracy == pytest.approx((np.arange(400) % 4 > 0)[held_out].mean())
    (challenger,) = incumbent.challengers
    assert challenger.difference == pytest.approx(evaluation.policy("ridge").accuracy - incumbent.accuracy)
    assert (challenger.head, challenger.other, challenger.verdict) == ("ridge", "incumbent", "loss")
    text = text_report(evaluation)
    assert "ridge against small-0123, which is published and has " in text
    assert "Heads trained and judged on these tasks so far: 3 times." in text


def test_an_evaluation_is_an_artifact_whose_version_is_blind_to_costs(tmp_path):
    store = ArtifactStore(str(tmp_path))
    evaluation = an_evaluation({"ridge": always(0)})
    sha, version = write_evaluation(store, evaluation, {"head": "1" * 64})
    judged = read_evaluation(store, sha)
    assert judged.evaluation == evaluation
    cheaper = tuple(result.model_copy(update={"cost_usd": 0.0}) for result in evaluation.policies)
    assert write_evaluation(store, evaluation.model_copy(update={"policies": cheaper}), {})[1] == version
    assert write_evaluation(store, evaluation.model_copy(update={"n_train": 1}), {})[1] != version
    dropped = (Dropped(name="eve", reason="answers on quiz were never complete"),)
    assert write_evaluation(store, evaluation.model_copy(update={"dropped": dropped}), {})[1] != version
    later = evaluation.model_copy(update={"looks": 9, "incumbent": None})
    assert write_evaluation(store, later, {})[1] == version
    measured: Any = {
        "looks": True,
        "incumbent": True,
        "dropped": True,
        "frontier": True,
        "recovered": True,
        "policies": {"__all__": {"cost_usd", "latency_s"}},
    }
    assert version == digest(evaluation.model_dump(mode="json", exclude=measured)), "as before there was such a field"
    for data in (b"nonsense", b"[]", b'{"kind": "head"}', b'{"kind": "evaluation", "evaluation": {}}'):
        with pytest.raises(ArtifactError, match="is not an evaluation"):
            read_evaluation(store, store.put(data))


def test_reports_say_what_was_trained_again():
    table, drawn = TestRetraining.two_benchmarks()
    recipes = {
        "ridge": learners_of("ridge", 3),
        "sep_cma_es": learners_of("sep_cma_es", 3, generations=3),
    }
    evaluation = evaluate(table, drawn, {"ridge": always(0)}, WORKERS, recipes=recipes, resamples=50)
    markdown, text = markdown_report(evaluation), text_report(evaluation)
    assert "| trainer | seeds | accuracy |" in markdown and "\n| sep_cma_es | 3 |" in markdown
    assert "\n| ridge | riddles | " in markdown and "\n| ridge | knn | " in markdown
    assert "sep_cma_es: with 3 training seeds" in text and "ridge on riddles without having seen it: " in text
    assert evaluation.gate("ridge").passed and not evaluation.gate("sep_cma_es").passed
    assert "The gate lets the head of ridge pass: " in text
    assert "The gate publishes the best single worker instead of sep_cma_es: " in text


def test_reports_say_what_was_measured():
    evaluation = an_evaluation({"ridge": always(0)})
    markdown, text = markdown_report(evaluation), text_report(evaluation)
    result = evaluation.policy("ridge")
    assert f"| ridge | {result.accuracy:.1%} | {100 * result.difference:+.1f} |" in markdown
    assert "| quiz | " in markdown
    assert "reference" in text
    assert f"these {evaluation.n_test} tasks" in text
    assert len({line.count("|") for line in markdown.split("\n\n")[2].splitlines()}) == 1


def test_reports_say_who_is_missing_and_why():
    gone = (Dropped(name="eve", reason="answers on quiz cover 30 of 40 tasks"),)
    evaluation = an_evaluation({"ridge": always(0)}).model_copy(update={"dropped": gone})
    assert "- trained without eve: answers on quiz cover 30 of 40 tasks.\n" in markdown_report(evaluation)
    assert "\ntrained without eve: answers on quiz cover 30 of 40 tasks.\n" in text_report(evaluation)
