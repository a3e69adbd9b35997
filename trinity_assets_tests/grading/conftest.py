"""The public cases and tasks that the room's tests share."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SharedData = Callable[[str], Path]


@pytest.fixture(scope="session")
def grading_cases(shared_data: SharedData) -> list[dict[str, Any]]:
    return [json.loads(line) for line in shared_data("grading_cases.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="session")
def humaneval(shared_data: SharedData) -> dict[str, dict[str, str]]:
    with gzip.open(shared_data("humaneval/HumanEval.jsonl.gz"), "rt", encoding="utf-8") as lines:
        return {task["task_id"]: task for task in map(json.loads, lines)}
