import io

import numpy as np
import pytest
from PIL import Image

from trinity_assets.routing.evaluation import evaluate
from trinity_assets.routing.head import BestSingle
from trinity_assets.routing.plots import (
    chosen_plot,
    comparison_plot,
    convergence_plot,
    frontier_plot,
    shares_plot,
    solve_rates_plot,
)
from trinity_assets.routing.trainers.head import TrainingRecord
from trinity_assets_tests.routing.planted import features, planted_scores, table_of

POOL = [f"a_worker_with_a_long_name_{i}" for i in range(9)]
MAX_BYTES = 35_000


@pytest.fixture(scope="module")
def pictures() -> dict[str, bytes]:
    drawn = features(600, 8)
    scores, _ = planted_scores(drawn, len(POOL), noise=0.2)
    table = table_of(scores, POOL)
    table["category"] = [f"a_long_category_{i % 20}" for i in range(600)]
    table.loc[table["category"] == "a_long_category_1", f"score__{POOL[0]}"] = np.nan
    head = np.linalg.lstsq(drawn.astype(float), scores, rcond=None)[0].T
    evaluation = evaluate(
        table, drawn, {"ridge": head, "sep_cma_es": head[::-1], "ridge@2": head[::-1]}, POOL, resamples=200
    )
    generator = np.random.default_rng(0)
    history = tuple(
        {"generation": i + 1, "best": 0.6 + generator.random() / 20, "mean": 0.5 + i / 2000, "sigma": 0.5}
        for i in range(300)
    )
    record = TrainingRecord(settings={}, chosen={}, reward=0.61, history=history, evaluations=0)
    return {
        "rates": solve_rates_plot(table, POOL),
        "convergence": convergence_plot("sep_cma_es", record, BestSingle(worker=POOL[0], reward=0.5)),
        "shares": shares_plot(evaluation),
        "comparison": comparison_plot(evaluation),
        "chosen": chosen_plot(evaluation, "ridge"),
        "frontier": frontier_plot(evaluation),
    }


@pytest.mark.parametrize("name", ["rates", "convergence", "shares", "comparison", "chosen", "frontier"])
def test_pictures_are_small_pngs(pictures, name):
    image = Image.open(io.BytesIO(pictures[name]))
    assert image.format == "PNG"
    assert 500 < image.width < 1300
    assert 250 < image.height < 900
    assert len(pictures[name]) <= MAX_BYTES
