import numpy as np
import pandas as pd

from trinity_assets.routing.specs import SplitSpec
from trinity_assets.routing.split import assign_split

SPEC = SplitSpec(seed=0, test=0.4, folds=5)


def groups(n: int) -> pd.Series:
    return pd.Series([f"g{i}" for i in range(n)])


def test_new_tasks_move_no_old_one():
    before = assign_split("quiz", groups(200), SPEC)
    after = assign_split("quiz", groups(900).sample(frac=1, random_state=1), SPEC)
    pd.testing.assert_frame_equal(after.sort_index().iloc[:200], before)


def test_near_duplicates_stay_together():
    twins = pd.Series(np.repeat([f"g{i}" for i in range(300)], 2))
    placed = assign_split("quiz", twins, SPEC)
    assert (placed.groupby(twins.to_numpy()).nunique() == 1).all(axis=None)


def test_proportions():
    placed = assign_split("quiz", groups(5000), SPEC)
    assert abs((placed["split"] == "test").mean() - 0.4) < 0.02
    train = placed[placed["split"] == "train"]
    assert train["fold"].value_counts(normalize=True).between(0.17, 0.23).all()
    assert sorted(train["fold"].unique()) == [0, 1, 2, 3, 4]
    assert (placed.loc[placed["split"] == "test", "fold"] == -1).all()


def test_seed_and_benchmark_decide_too():
    first = assign_split("quiz", groups(500), SPEC)["split"]
    for other in (assign_split("quiz", groups(500), SplitSpec(seed=1)), assign_split("exam", groups(500), SPEC)):
        assert 0.35 < (first != other["split"]).mean() < 0.6


def test_a_larger_test_part_only_adds_tasks_to_it():
    small = assign_split("quiz", groups(500), SplitSpec(test=0.2))["split"] == "test"
    large = assign_split("quiz", groups(500), SplitSpec(test=0.5))["split"] == "test"
    assert large[small].all()


def test_the_hash_is_frozen():
    placed = assign_split("starter", pd.Series(["task_1", "task_2", "task_3", "task_4"]), SPEC)
    assert placed["split"].tolist() == ["train", "test", "train", "train"]
    assert placed["fold"].tolist() == [4, -1, 3, 1]
