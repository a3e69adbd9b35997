"""Which head a search starts from, and what its record says of that."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from trinity_assets.errors import TrainingError
from trinity_assets.routing.fitting import fit_router
from trinity_assets.routing.objective import TableObjective
from trinity_assets.routing.pool_changes import PoolHead
from trinity_assets.routing.specs import RouterTraining
from trinity_assets.routing.trainers.all_heads import train_heads
from trinity_assets.routing.warm_start import EarlierHead, head_to_start_from, named_rows, train_from
from trinity_assets_tests.routing.planted import WORKERS, features, planted_scores, table_of

N, HIDDEN = 150, 6
DRAWN = features(N, HIDDEN)
SCORES = planted_scores(DRAWN, 3)[0]
OBJECTIVE = TableObjective(DRAWN, SCORES, np.arange(N) % 5, np.tile([0.001, 0.002, 0.003], (N, 1)))


def training(*trainers: str, **declared: object) -> RouterTraining:
    settings = {name: {"generations": 2} if name == "sep_cma_es" else {} for name in trainers}
    return RouterTraining.model_validate({"trainers": settings, "export": trainers[0]} | declared)


def earlier(workers: list[str], width: int = HIDDEN) -> EarlierHead:
    weights = np.random.default_rng(0).standard_normal((len(workers), width)).astype(np.float32)
    return EarlierHead(PoolHead(weights, named_rows(workers)), "a" * 64)


@pytest.mark.parametrize(
    ("before", "chosen"),
    [
        (("ridge", "sep_cma_es"), "sep_cma_es"),
        (("constant", "ridge"), "ridge"),
    ],
)
def test_a_search_starts_from_its_own_head_else_from_the_first_that_is_one(before, chosen):
    records = {name: head.record for name, head in train_heads(OBJECTIVE, training(*before)).items()}
    assert head_to_start_from(records, training("ridge", "sep_cma_es")) == chosen


def test_a_constant_is_no_start():
    records = {name: head.record for name, head in train_heads(OBJECTIVE, training("constant")).items()}
    with pytest.raises(TrainingError, match=r"nothing to start from in \['constant'\]: each asks one worker, always"):
        head_to_start_from(records, training("sep_cma_es"))


def test_records_of_searches_say_what_they_started_from():
    declared = training("ridge", "sep_cma_es", cost_weights=[0.1])
    warm = train_from(earlier(["cyd", "ada"]), OBJECTIVE, named_rows(WORKERS), declared)
    noted = {name: head.record.chosen.get("started_from") for name, head in warm.items()}
    assert noted == {"ridge": None, "sep_cma_es": "a" * 64, "ridge@0.1": None, "sep_cma_es@0.1": "a" * 64}
    cold = train_from(None, OBJECTIVE, named_rows(WORKERS), declared)
    assert {name: head.record for name, head in cold.items()} == {
        name: head.record for name, head in train_heads(OBJECTIVE, declared).items()
    }
    assert warm["ridge"].weights.tobytes() == cold["ridge"].weights.tobytes()
    assert warm["sep_cma_es"].weights.tobytes() != cold["sep_cma_es"].weights.tobytes()


def test_what_has_nothing_in_common_is_refused():
    table = table_of(SCORES, WORKERS)
    for before, complaint in [
        (earlier(WORKERS, width=7), "is for features of width 7, and these have 6; give features of the kind"),
        (earlier(["dee", "eve"]), r"has rows of \['dee', 'eve'\], and none of them is in the pool"),
    ]:
        with pytest.raises(TrainingError, match=complaint):
            fit_router(table, DRAWN, training("sep_cma_es"), earlier=before)


def test_what_is_judged_starts_from_zero():
    """A head that has seen all train tasks would show the gate what its folds leave out."""
    table = table_of(SCORES, WORKERS)
    declared = training("sep_cma_es", training_seeds=1)
    cold, warm = (fit_router(table, DRAWN, declared, earlier=before) for before in (None, earlier(WORKERS)))
    assert cold.heads["sep_cma_es"].weights.tobytes() != warm.heads["sep_cma_es"].weights.tobytes()
    assert cold.gate == warm.gate


def test_only_a_search_can_be_declared_to_start_warm():
    with pytest.raises(ValidationError, match=r"warm_start is of trainers that search \(sep_cma_es\)"):
        training("ridge", warm_start=True)
    cold, warm = (training("sep_cma_es", warm_start=warm).head_identity() for warm in (False, True))
    assert warm == cold | {"warm_start": True}
