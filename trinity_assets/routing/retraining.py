"""What an evaluation trains by itself and judges once: heads of other training seeds, or of fewer benchmarks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from trinity_assets.errors import TrainingError
from trinity_assets.routing.baselines import Side, best_single
from trinity_assets.routing.crossfit import Learn, TrainTasks
from trinity_assets.routing.resampling import Resampling
from trinity_assets.routing.results import LeftOut, SeedSpread

Recipes = Mapping[str, Sequence[Learn]]
"""How heads are learnt, by trainer: with the seed of its settings, then with others; always from zero."""


def seed_spreads(
    recipes: Recipes, tasks: TrainTasks, test: Side, others: Mapping[str, np.ndarray], resampling: Resampling
) -> list[SeedSpread]:
    """Trainers that draw: what other training seeds would have given on the test tasks, above each of the ``others``.

    Those are policies' scores (n,) by name, the reference's first.
    """
    spreads = []
    objective = tasks.objective()
    rows = np.arange(len(test.scores))
    for name, learns in recipes.items():
        if len(learns) < 2:
            continue
        scores = np.stack([test.scores[rows, learn(objective).picks(test.features)] for learn in learns], axis=1)
        above = np.stack([scores - other[:, None] for other in others.values()], axis=2)
        by_seed = scores.mean(axis=0)
        spreads += [
            SeedSpread(
                trainer=name,
                other=other,
                seeds=len(learns),
                lowest=float(by_seed.min()),
                highest=float(by_seed.max()),
                **compared,
            )
            for other, compared in zip(others, resampling.compared(above), strict=True)
        ]
    return spreads


def left_out(
    recipes: Recipes,
    tasks: TrainTasks,
    train_benchmarks: np.ndarray,
    test: Side,
    workers: Sequence[str],
    resampling: Resampling,
) -> list[LeftOut]:
    """How each trainer's head does on a benchmark that it has not seen; nothing where there is only one.

    A benchmark is passed over for a trainer that cannot learn from the others, and one without test tasks for all.
    """
    found = []
    for benchmark in np.unique(test.benchmarks):
        seen, unseen = train_benchmarks != benchmark, test.benchmarks == benchmark
        if not seen.any():
            continue
        single = best_single(tasks.scores[seen], tasks.costs[seen])
        scores, rows = test.scores[unseen], np.arange(unseen.sum())
        here = Resampling(resampling.groups[unseen], resampling.resamples, resampling.seed)
        for name, learns in recipes.items():
            try:
                head = learns[0](tasks.objective(seen))
            except TrainingError:
                continue
            routed = scores[rows, head.picks(test.features[unseen])]
            (compared,) = here.compared((routed - scores[:, single])[:, None])
            found.append(
                LeftOut(
                    trainer=name,
                    benchmark=str(benchmark),
                    n_test=len(routed),
                    accuracy=float(routed.mean()),
                    reference_worker=workers[single],
                    **compared,
                )
            )
    return found
