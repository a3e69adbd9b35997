import numpy as np
import pytest

from trinity_assets.errors import TrainingError
from trinity_assets.routing.head import BestSingle, HeadRow, Heads, HeadSpec
from trinity_assets.routing.objective import TableObjective, route
from trinity_assets.routing.pool_changes import PoolHead, fit_to_pool, reordered, route_offered, select_rows
from trinity_assets.routing.specs import RidgeSettings, RouterTraining, SepCMAESSettings
from trinity_assets.routing.trainers import ridge, sep_cma_es
from trinity_assets.routing.trainers.all_heads import train_heads
from trinity_assets.routing.trainers.head import Start
from trinity_assets_tests.checkpoints.conftest import FEATURE_SPEC
from trinity_assets_tests.routing.planted import features, planted_scores

ROWS = tuple(HeadRow(name=name, digest=name[0]) for name in ("ada", "bob", "cyd", "dee"))
DRAWN = features(1700, 10)
SCORES, RIGHT = planted_scores(DRAWN, 4)
TRAIN, UNSEEN = slice(1200), slice(1200, None)


def objective(columns: list[int], drawn: np.ndarray = DRAWN) -> TableObjective:
    rows = np.arange(1200)
    return TableObjective(drawn[TRAIN], SCORES[TRAIN][:, columns], rows % 5)


def trained(columns: list[int]) -> PoolHead:
    return PoolHead(ridge.train(objective(columns), RidgeSettings()).weights, tuple(ROWS[i] for i in columns))


def accuracy(head: PoolHead, columns: list[int]) -> float:
    return float(SCORES[UNSEEN][:, columns][np.arange(500), route(DRAWN[UNSEEN], head.weights)].mean())


def test_offering_some_masks_the_others():
    head = trained([0, 1, 2, 3])
    picked = route_offered(DRAWN[UNSEEN], head, {"b", "d"})
    logits = DRAWN[UNSEEN] @ head.weights.T
    np.testing.assert_array_equal(picked, np.where(logits[:, 1] >= logits[:, 3], 1, 3))
    np.testing.assert_array_equal(route_offered(DRAWN, head, {row.digest for row in ROWS}), route(DRAWN, head.weights))
    assert (route_offered(DRAWN, head, {"c"}) == 2).all()


def test_offering_nobody_or_a_stranger_is_refused():
    head = trained([0, 1])
    with pytest.raises(TrainingError, match="0 of the 0 workers offered"):
        route_offered(DRAWN, head, set())
    with pytest.raises(TrainingError, match=r"1 of the 2 workers offered have no row in the head of \['ada', 'bob'\]"):
        route_offered(DRAWN, head, {"a", "z"})


def test_reordering_asks_the_same_workers_and_removing_leaves_the_rest_as_offered():
    head = trained([0, 1, 2, 3])
    turned = select_rows(head, [ROWS[2], ROWS[0], ROWS[3], ROWS[1]])
    names = [np.array([row.name for row in one.rows])[route(DRAWN, one.weights)] for one in (head, turned)]
    np.testing.assert_array_equal(*names)
    fewer = select_rows(head, [ROWS[3], ROWS[1]])
    np.testing.assert_array_equal(fewer.weights, head.weights[[3, 1]])
    np.testing.assert_array_equal(np.array([3, 1])[route(DRAWN, fewer.weights)], route_offered(DRAWN, head, {"b", "d"}))


def test_a_worker_under_another_name_keeps_its_row_and_one_asked_otherwise_does_not():
    head = trained([0, 1])
    renamed = HeadRow(name="adele", digest="a")
    np.testing.assert_array_equal(select_rows(head, [renamed, ROWS[1]]).weights, head.weights)
    with pytest.raises(TrainingError, match=r"workers \['ada'\] have no row .* fit the head to the pool"):
        select_rows(head, [HeadRow(name="ada", digest="changed"), ROWS[1]])


def heads_of(rows: tuple[HeadRow, ...]) -> Heads:
    """The heads of ridge and of the best single worker, bob, who stands second."""
    scores = np.column_stack([SCORES[TRAIN][:, :1], np.ones(1200), SCORES[TRAIN][:, 2:3]])
    declared = RouterTraining.model_validate({"trainers": {"ridge": {}, "constant": {}}, "export": "ridge"})
    trained = train_heads(TableObjective(DRAWN[TRAIN], scores, np.arange(1200) % 5), declared)
    spec = HeadSpec(
        router="small",
        workers=rows,
        feature_spec=FEATURE_SPEC,
        table_sha256="1" * 64,
        table_version="2" * 64,
        best_single_on_train=BestSingle(worker="bob", reward=1.0),
        trainers={name: head.record for name, head in trained.items()},
    )
    return Heads({name: head.weights for name, head in trained.items()}, spec, "3" * 64)


def test_heads_of_a_pool_in_another_order_are_their_rows_and_name_the_same_worker():
    heads = heads_of(ROWS[:3])
    moved = reordered(heads, [ROWS[2], ROWS[0], ROWS[1]])
    for name, head in moved.items():
        assert head.weights.tobytes() == heads.weights[name][[2, 0, 1]].tobytes()
    assert heads.spec.trainers["constant"].constant == 1
    assert moved["constant"].record.constant == 2
    assert moved["ridge"].record == heads.spec.trainers["ridge"]


def test_what_is_no_other_order_is_not_reordered():
    heads = heads_of(ROWS[:3])
    twice = heads_of((ROWS[0], HeadRow(name="abe", digest="a"), ROWS[1]))
    for one, pool in [(heads, ROWS[:3]), (heads, ROWS[1:3]), (heads, ROWS[1:]), (twice, [ROWS[1], *ROWS[:1] * 2])]:
        with pytest.raises(TrainingError, match="in another order; train its heads"):
            reordered(one, pool)


def test_a_worker_that_joins_beside_a_regression_gets_the_row_that_ridge_would_give_it():
    whole, old = trained([0, 1, 2, 3]), trained([0, 1, 3])
    grown = fit_to_pool(old, ROWS, objective([0, 1, 2, 3]))
    np.testing.assert_array_equal(grown.weights[[0, 1, 3]], old.weights)
    assert accuracy(grown, [0, 1, 2, 3]) == pytest.approx(accuracy(whole, [0, 1, 2, 3]), abs=0.03)
    assert accuracy(grown, [0, 1, 2, 3]) > accuracy(old, [0, 1, 3]) + 0.1


@pytest.mark.parametrize("scale", [0.01, 1.0, 300.0])
def test_the_scale_and_level_of_the_old_logits_do_not_matter(scale):
    old = trained([0, 1, 3])
    level = np.zeros(10)
    level[0] = -5.0  # the constant component of the features
    moved = PoolHead((scale * (old.weights + level)).astype(np.float32), old.rows)
    grown = fit_to_pool(moved, ROWS, objective([0, 1, 2, 3]))
    expected = fit_to_pool(old, ROWS, objective([0, 1, 2, 3]))
    same = route(DRAWN[UNSEEN], grown.weights) == route(DRAWN[UNSEEN], expected.weights)
    assert same.mean() > 0.99


def test_a_search_starts_from_the_grown_head():
    old = trained([0, 1, 3])
    table = objective([0, 1, 2, 3])
    grown = fit_to_pool(old, ROWS, table)
    settings = SepCMAESSettings(generations=3, sigma0=0.05)
    warm = sep_cma_es.train(table, settings, Start(initial=grown.weights)).reward
    assert warm > sep_cma_es.train(table, settings).reward + 0.1
    assert warm > float(table(grown.weights[None])[0]) - 0.02


def test_without_old_workers_ridge_alone_is_left():
    table = objective([2, 3])
    grown = fit_to_pool(trained([0, 1]), ROWS[2:], table)
    assert accuracy(grown, [2, 3]) == pytest.approx(accuracy(trained([2, 3]), [2, 3]), abs=0.03)


def test_what_does_not_fit_is_refused():
    head = trained([0, 1])
    with pytest.raises(TrainingError, match="does not have one row for each of the 1 workers"):
        PoolHead(head.weights, ROWS[:1])
    with pytest.raises(TrainingError, match=r"objective takes heads of shape \(2, 10\)"):
        fit_to_pool(head, ROWS[:3], objective([0, 1]))
    scores = SCORES[TRAIN][:, :3].copy()
    scores[:, 2] = np.nan
    with pytest.raises(TrainingError, match="1 of the workers that joined the pool have no known score"):
        fit_to_pool(head, ROWS[:3], TableObjective(DRAWN[TRAIN], scores, np.arange(1200) % 5))
