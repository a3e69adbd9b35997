import json

import numpy as np
import pytest

from trinity_assets.errors import ArtifactError, TrainingError
from trinity_assets.routing.objective import TableObjective, route
from trinity_assets.routing.routed_score import RoutedScore
from trinity_assets.routing.specs import SepCMAESSettings
from trinity_assets.routing.trainers import sep_cma_es
from trinity_assets.routing.trainers.head import Start
from trinity_assets_tests.routing.planted import WORKERS, features, planted_scores


class KilledError(Exception):
    """What ends a training from outside."""


class Watch:
    """Counts the generations that are rewarded, and kills the training in one of them."""

    def __init__(self) -> None:
        self.generations = 0
        self.killed_in: int | None = None
        self._rewards = sep_cma_es._rewards

    def __call__(self, *arguments):
        self.generations += 1
        if self.generations == self.killed_in:
            raise KilledError
        return self._rewards(*arguments)

    def killed(self, objective: TableObjective, settings: SepCMAESSettings, start: Start, generation: int) -> None:
        self.generations, self.killed_in = 0, generation
        with pytest.raises(KilledError):
            sep_cma_es.train(objective, settings, start)
        self.generations, self.killed_in = 0, None


@pytest.fixture
def watch(monkeypatch) -> Watch:
    watching = Watch()
    monkeypatch.setattr(sep_cma_es, "_rewards", watching)
    return watching


@pytest.fixture
def objective() -> TableObjective:
    drawn = features(150, 8)
    return TableObjective(drawn, planted_scores(drawn, 3, noise=0.1)[0], np.arange(150) % 5)


def kept_in(directory) -> Start:
    return Start(directory=directory, save_every_s=0)


def planted(n: int, hidden: int) -> tuple[TableObjective, np.ndarray, np.ndarray]:
    """An objective on n tasks, and the features and right workers of 500 others under the same rule."""
    drawn = features(n + 500, hidden)
    scores, right = planted_scores(drawn, 3)
    return TableObjective(drawn[:n], scores[:n], np.arange(n) % 5), drawn[n:], right[n:]


class TestSearch:
    def test_it_improves_and_beats_every_constant(self):
        objective, unseen, right = planted(400, 10)
        head = sep_cma_es.train(objective, SepCMAESSettings(generations=60))
        assert head.reward > objective.constant_rewards().max() + 0.3
        assert head.record.history[-1]["mean"] > head.record.history[0]["mean"] + 0.3
        assert (route(unseen, head.weights) == right).mean() > 0.8
        assert head.record.evaluations == 60 * (4 + int(3 * np.log(30)))

    @pytest.mark.parametrize("mirrored", [False, True])
    def test_a_seed_decides_everything(self, mirrored):
        objective, _, _ = planted(40, 60)
        settings = SepCMAESSettings(generations=8, mirrored=mirrored, seed=3)
        before = np.random.get_state(legacy=False)
        first, second = (sep_cma_es.train(objective, settings) for _ in range(2))
        np.testing.assert_array_equal(first.weights, second.weights)
        assert first.record == second.record
        assert first.weights.shape == (3, 60)
        other = sep_cma_es.train(objective, settings.model_copy(update={"seed": 4}))
        assert not np.array_equal(first.weights, other.weights)
        assert str(np.random.get_state(legacy=False)) == str(before)

    def test_it_returns_the_distribution_mean(self):
        objective, _, _ = planted(200, 6)
        head = sep_cma_es.train(objective, SepCMAESSettings(generations=5, population=8))
        assert head.reward == pytest.approx(float(objective(head.weights[None])[0]))
        assert head.record.evaluations == 40

    def test_a_flat_objective_gives_the_zero_head(self):
        objective = TableObjective(features(20, 4), np.ones((20, 3)), np.zeros(20))
        head = sep_cma_es.train(objective, SepCMAESSettings(generations=5))
        assert not head.weights.any()
        assert head.reward == 1.0


@pytest.mark.parametrize("population", [None, 7, 30])
def test_mirrored_rewards_are_those_of_the_candidates(monkeypatch, population):
    drawn = features(40, 60)
    objective = TableObjective(drawn, planted_scores(drawn, 3)[0], np.arange(40) % 5)
    ours, seen = sep_cma_es._rewards, []

    def compared(space, strategy, candidates, settings):
        rewards = ours(space, strategy, candidates, settings)
        heads = np.asarray(candidates, dtype=np.float32).reshape(-1, *space.origin.shape)
        pairs = sep_cma_es._mirrored_pairs(
            np.asarray(candidates), np.asarray(strategy.mean), strategy.number_of_injections
        )
        assert pairs is not None
        np.testing.assert_allclose(rewards, space.objective(heads), atol=1.01 / 40)
        seen.append(float(np.abs(rewards - space.objective(heads)).sum()))
        return rewards

    monkeypatch.setattr(sep_cma_es, "_rewards", compared)
    sep_cma_es.train(objective, SepCMAESSettings(generations=6, population=population))
    assert len(seen) == 6
    assert sum(seen) < 3 / 40


def test_points_that_are_no_mirrors_are_rewarded_one_by_one():
    points = np.random.default_rng(0).standard_normal((6, 4))
    assert sep_cma_es._mirrored_pairs(points, np.zeros(4), 0) is None
    mirrored = np.concatenate([points[:3], -points[:3]])
    pairs = sep_cma_es._mirrored_pairs(mirrored, np.zeros(4), 0)
    assert pairs is not None
    assert [side.tolist() for side in pairs] == [[0, 1, 2], [3, 4, 5]]


class TestResuming:
    @pytest.mark.parametrize("patience", [None, 4])
    @pytest.mark.parametrize("mirrored", [True, False])
    def test_a_killed_training_gives_the_head_of_an_undisturbed_one(
        self, tmp_path, objective, watch, patience, mirrored
    ):
        settings = SepCMAESSettings(generations=9, patience=patience, mirrored=mirrored)
        undisturbed = sep_cma_es.train(objective, settings)
        watch.killed(objective, settings, kept_in(tmp_path), 4)
        watch.killed(objective, settings, kept_in(tmp_path), 2)
        resumed = sep_cma_es.train(objective, settings, kept_in(tmp_path))
        np.testing.assert_array_equal(resumed.weights, undisturbed.weights)
        assert resumed.record == undisturbed.record
        assert list(tmp_path.iterdir()) == []

    def test_what_was_rewarded_is_not_asked_again(self, tmp_path, objective, watch):
        settings = SepCMAESSettings(generations=9)
        watch.killed(objective, settings, kept_in(tmp_path), 6)
        assert len(list(tmp_path.iterdir())) == 1
        sep_cma_es.train(objective, settings, kept_in(tmp_path))
        assert watch.generations == 9 - 5

    def test_other_settings_and_other_tables_begin_anew(self, tmp_path, objective, watch):
        settings = SepCMAESSettings(generations=4)
        watch.killed(objective, settings, kept_in(tmp_path), 3)
        sep_cma_es.train(objective, settings.model_copy(update={"seed": 1}), kept_in(tmp_path))
        assert watch.generations == 4
        watch.generations = 0
        scores = objective.scores.copy()
        scores[0] = 1 - scores[0]
        sep_cma_es.train(TableObjective(objective.features, scores, objective.folds), settings, kept_in(tmp_path))
        assert watch.generations == 4
        assert len(list(tmp_path.iterdir())) == 1

    @pytest.mark.parametrize("damage", ["", "{}", "not a journal"])
    def test_an_unreadable_journal_is_begun_anew(self, tmp_path, objective, watch, damage):
        settings = SepCMAESSettings(generations=4)
        undisturbed = sep_cma_es.train(objective, settings)
        watch.killed(objective, settings, kept_in(tmp_path), 3)
        (journal,) = tmp_path.iterdir()
        journal.write_text(damage)
        resumed = sep_cma_es.train(objective, settings, kept_in(tmp_path))
        assert watch.generations == 4
        np.testing.assert_array_equal(resumed.weights, undisturbed.weights)

    def test_a_journal_of_other_numbers_is_begun_anew(self, tmp_path, objective, watch, caplog):
        settings = SepCMAESSettings(generations=4)
        undisturbed = sep_cma_es.train(objective, settings)
        watch.killed(objective, settings, kept_in(tmp_path), 4)
        (journal,) = tmp_path.iterdir()
        text = journal.read_text()
        position = text.rindex('"mean_sha256":"') + len('"mean_sha256":"')
        journal.write_text(text[:position] + "0" * 64 + text[position + 64 :])
        resumed = sep_cma_es.train(objective, settings, kept_in(tmp_path))
        assert "begun anew" in caplog.text
        np.testing.assert_array_equal(resumed.weights, undisturbed.weights)
        assert list(tmp_path.iterdir()) == []

    def test_a_journal_that_lacks_a_reward_is_begun_anew(self, tmp_path, objective, watch):
        settings = SepCMAESSettings(generations=4)
        undisturbed = sep_cma_es.train(objective, settings)
        watch.killed(objective, settings, kept_in(tmp_path), 3)
        (journal,) = tmp_path.iterdir()
        pages = json.loads(journal.read_text())
        pages["generations"][1]["rewards"].pop()
        journal.write_text(json.dumps(pages))
        resumed = sep_cma_es.train(objective, settings, kept_in(tmp_path))
        np.testing.assert_array_equal(resumed.weights, undisturbed.weights)

    def test_it_saves_as_often_as_it_is_told_to(self, tmp_path, objective, watch):
        now = iter(range(1000))
        start = Start(directory=tmp_path, save_every_s=3, clock=lambda: float(next(now)))
        watch.killed(objective, SepCMAESSettings(generations=9), start, 3)
        assert list(tmp_path.iterdir()) == []
        watch.killed(objective, SepCMAESSettings(generations=9), start, 5)
        assert len(list(tmp_path.iterdir())) == 1

    def test_a_place_that_cannot_be_written_is_named(self, tmp_path, objective):
        (tmp_path / "file").touch()
        with pytest.raises(ArtifactError, match=r"cannot keep the state of a training in .*file"):
            sep_cma_es.train(objective, SepCMAESSettings(generations=2), kept_in(tmp_path / "file"))


class TestValidation:
    def test_the_best_validated_mean_is_returned(self, objective):
        head = sep_cma_es.train(objective, SepCMAESSettings(generations=30, patience=30))
        chosen, history = head.record.chosen, head.record.history
        validated = [row["validation"] for row in history]
        assert chosen["validation"] == max(validated)
        assert chosen["generation"] == 1 + validated.index(max(validated))
        _, held_out = objective.validation()
        assert float(held_out(head.weights[None])[0]) == chosen["validation"]

    def test_patience_ends_a_search(self, objective):
        head = sep_cma_es.train(objective, SepCMAESSettings(generations=60, patience=3))
        chosen = head.record.chosen
        assert "patience" in chosen["stopped"]
        assert chosen["generations"] == chosen["generation"] + 3 < 60

    def test_the_validated_fold_is_not_searched_on(self, objective):
        settings = SepCMAESSettings(generations=5, patience=5)
        scores = objective.scores.copy()
        scores[objective.folds == 0] = 1 - scores[objective.folds == 0]
        other = TableObjective(objective.features, scores, objective.folds)
        histories = [sep_cma_es.train(one, settings).record.history for one in (objective, other)]
        first, second = ([row["mean"] for row in history] for history in histories)
        assert first == second

    def test_the_only_scores_of_a_worker_are_searched_on(self, objective):
        scores = objective.scores.copy()
        scores[objective.folds > 0, 2] = np.nan
        scores[objective.folds == 1, 0] = np.nan
        lone = TableObjective(objective.features, scores, objective.folds, workers=WORKERS)
        parts = lone.validation()
        assert parts is not None
        searched, held_out = parts
        assert set(held_out.folds) == {1} and set(searched.folds) == {0, 2, 3, 4}
        assert searched.unscored == [] and searched.workers == held_out.workers == tuple(WORKERS)
        head = sep_cma_es.train(lone, SepCMAESSettings(generations=10, patience=10))
        assert float(held_out(head.weights[None])[0]) == head.record.chosen["validation"]

    def test_where_no_fold_can_be_spared_all_are_searched(self, objective):
        folds = objective.folds % 2
        known = np.stack([folds == 0, folds == 1, folds >= 0], axis=1)
        scattered = TableObjective(objective.features, np.where(known, objective.scores, np.nan), folds)
        assert scattered.validation() is None
        patient = sep_cma_es.train(scattered, SepCMAESSettings(generations=5, patience=1))
        assert len(patient.record.history) == 5 and "validation" not in patient.record.chosen
        assert patient.record.chosen["unused"] == ["patience"]

    def test_one_fold_is_searched_whole(self):
        drawn = features(40, 5)
        objective = TableObjective(drawn, planted_scores(drawn, 2)[0], np.zeros(40))
        patient = sep_cma_es.train(objective, SepCMAESSettings(generations=5, patience=1))
        whole = sep_cma_es.train(objective, SepCMAESSettings(generations=5))
        np.testing.assert_array_equal(patient.weights, whole.weights)
        assert "validation" not in patient.record.chosen


class TestWarmStart:
    @pytest.mark.parametrize("hidden", [8, 60])
    def test_it_starts_as_good_as_the_given_head(self, hidden):
        drawn = features(50, hidden)
        scores, right = planted_scores(drawn, 3)
        objective = TableObjective(drawn, scores, np.arange(50) % 5)
        good = np.stack([drawn[right == worker].mean(axis=0) - drawn.mean(axis=0) for worker in range(3)])
        settings = SepCMAESSettings(generations=1, sigma0=1e-9)
        head = sep_cma_es.train(objective, settings, Start(initial=good))
        np.testing.assert_array_equal(route(drawn, head.weights), route(drawn, good))
        unseen = features(200, hidden, seed=5)
        assert (route(unseen, head.weights) == route(unseen, good)).mean() > 0.98

    def test_the_scale_of_the_given_head_does_not_matter(self, objective):
        given = np.random.default_rng(0).standard_normal((3, 8))
        settings = SepCMAESSettings(generations=4)
        once, larger = (
            sep_cma_es.train(objective, settings, Start(initial=scale * given)).weights for scale in (1.0, 1024.0)
        )
        np.testing.assert_allclose(once, larger, rtol=1e-5)

    def test_what_the_given_head_has_learnt_from_validates_nothing(self, objective):
        """Patience would hold a search back at a head that has seen the fold that it is validated on."""
        start = Start(initial=sep_cma_es.train(objective, SepCMAESSettings(generations=20)).weights)
        patient, whole = (
            sep_cma_es.train(objective, SepCMAESSettings(generations=6, patience=patience), start)
            for patience in (1, None)
        )
        np.testing.assert_array_equal(patient.weights, whole.weights)
        assert patient.record.history == whole.record.history and len(whole.record.history) == 6
        assert patient.record.chosen == whole.record.chosen | {"unused": ["patience"]}
        assert "unused" not in sep_cma_es.train(objective, SepCMAESSettings(generations=2, patience=2)).record.chosen

    def test_another_shape_is_refused(self, objective):
        with pytest.raises(TrainingError, match=r"need finite numbers of shape \(3, 8\)"):
            sep_cma_es.train(objective, SepCMAESSettings(), Start(initial=np.ones((2, 8))))


def test_a_worker_of_which_nothing_is_known_is_refused():
    scores = np.eye(4)[:, :3]
    scores[:, 2] = np.nan
    objective = TableObjective(features(4, 3), scores, np.zeros(4))
    with pytest.raises(TrainingError, match=r"workers \[2\].* have no known score"):
        sep_cma_es.train(objective, SepCMAESSettings())
    named = TableObjective(features(4, 3), scores, np.zeros(4), workers=WORKERS)
    with pytest.raises(TrainingError, match=r"^workers cyd have no known score to learn from; settle their answers"):
        sep_cma_es.train(named, SepCMAESSettings())


def test_it_needs_no_table():
    objective = RoutedScore(features(30, 3), np.eye(30)[:, :2], 0.0, 0)
    assert sep_cma_es.train(objective, SepCMAESSettings(generations=3, patience=2)).weights.shape == (2, 3)
