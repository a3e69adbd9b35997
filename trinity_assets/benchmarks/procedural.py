"""Tasks that reasoning-gym generates and knows how to score: its data sets by name, as rows that JSON can hold.

They are generated in a process of its own with a fixed hash seed. Six of its data sets walk over sets, and gave other
tasks in every process under the same seed; some draw from the interpreter's own generator, others print.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib.metadata
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from trinity_assets.benchmarks.formats import Row
from trinity_assets.benchmarks.specs import ProceduralSource
from trinity_assets.errors import TaskSourceError, listed

GENERATOR = "reasoning-gym"
MIXTURE = "composite"
"""A mixture of the other data sets: it cannot be scored by name, and one benchmark for each says more."""

Entry = dict[str, Any]
Scorer = Callable[[Any, Entry], float]

_REFUSED = 3
"""The child's exit status for a source that is at fault; its last line says why. Python itself ends with 1 or 2."""
_LAST_WORDS = 2000
"""Characters of what a child that failed said at its end."""


def generator_version() -> str | None:
    """The generator's name and installed version, None where it is not installed. Imports nothing."""
    try:
        return f"{GENERATOR} {importlib.metadata.version(GENERATOR)}"
    except importlib.metadata.PackageNotFoundError:
        return None


def generated_rows(source: ProceduralSource) -> list[Row]:
    """The tasks of ``source``: ``id``, ``question``, ``answer``, ``dataset`` and ``entry``.

    ``entry`` is what the data set's own scorer is given beside an answer: question, answer and metadata, as they are
    after a way through JSON (tuples are lists, keys are text). ``answer`` is None where a data set accepts many. Where
    the generator repeats a question, the first stays: a small space of tasks gives fewer than ``size``.

    Raises:
        TaskSourceError: reasoning-gym is missing, has no such data set, does not take the parameters, or scores a task
            otherwise once it was kept as JSON.
    """
    if generator_version() is None:
        raise TaskSourceError(
            f"generated tasks need the package {GENERATOR}, which is not installed; "
            "pip install 'trinity-assets[procedural]'"
        )
    child = subprocess.run(
        [sys.executable, "-m", "trinity_assets.benchmarks.procedural"],
        input=source.model_dump_json(),
        env=os.environ | {"PYTHONHASHSEED": "0"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if child.returncode == _REFUSED:
        raise TaskSourceError(child.stderr.strip().rpartition("\n")[2])
    if child.returncode != 0:
        raise TaskSourceError(
            f"{GENERATOR} failed to generate {source.dataset} (exit status {child.returncode}): "
            + child.stderr[-_LAST_WORDS:]
        )
    rows: list[Row] = json.loads(child.stdout)
    return rows


def _generate(source: ProceduralSource) -> tuple[Scorer, list[Entry]]:
    """The data set's own scorer and its first ``size`` entries."""
    import reasoning_gym
    from reasoning_gym.factory import DATASETS

    names = sorted(name for name in DATASETS if name != MIXTURE)
    if source.dataset not in names:
        close = difflib.get_close_matches(source.dataset, names, n=3, cutoff=0.5)
        advice = f"close to it: {', '.join(close)}" if close else f"there are {', '.join(names)}"
        raise TaskSourceError(f"{GENERATOR} has no data set {source.dataset!r} for a benchmark; {advice}")
    try:
        _reseed(f"{source.seed}")
        dataset = reasoning_gym.create_dataset(source.dataset, seed=source.seed, size=source.size, **source.config)
        entries = []
        for number in range(source.size):
            _reseed(f"{source.seed}/{number}")
            entries.append(dataset[number])
    except Exception as error:  # parameters are checked by assertions, and where they are used
        problem = f"{type(error).__name__}: {error}"
        raise TaskSourceError(
            f"{GENERATOR} cannot generate {source.dataset} with the config {json.dumps(source.config)}: {problem}"
        ) from error
    return dataset.score_answer, entries


def _kept_rows(dataset: str, own_scorer: Scorer, entries: list[Entry]) -> list[Row]:
    """The entries as rows, each question once, after a check that they can be scored by what is kept of them."""
    import reasoning_gym

    scorer = reasoning_gym.get_score_answer_fn(dataset)
    rows: dict[str, Row] = {}
    faults: list[str] = []
    for number, entry in enumerate(entries):
        try:
            kept: Entry = json.loads(json.dumps(entry, allow_nan=False))
            if otherwise := _scored_otherwise(own_scorer, scorer, entry, kept):
                faults.append(f"row {number}: {otherwise}")
        except (TypeError, ValueError) as error:
            faults.append(f"row {number}: {error}")
            continue
        row = {"id": f"{dataset}/{number}", "dataset": dataset, "entry": kept}
        rows.setdefault(kept["question"], row | {"question": kept["question"], "answer": kept["answer"]})
    if faults:
        raise TaskSourceError(
            f"{GENERATOR} cannot score {dataset} from what a snapshot keeps; choose another data set or config: "
            + listed(faults)
        )
    return list(rows.values())


def _reseed(seed: str) -> None:
    """Seed the global generators, from which some data sets draw."""
    import numpy as np

    random.seed(seed)
    np.random.seed(random.getrandbits(32))


def _scored_otherwise(own: Scorer, by_name: Scorer, entry: Entry, kept: Entry) -> str | None:
    """How the recorded answer's score changes when only the data set's name and the kept entry are at hand."""
    answer = entry["answer"]
    if answer is None:
        return None
    try:
        expected, found = own(answer, entry), by_name(answer, kept)
    except Exception as error:  # a scorer may fail in any way on data of another shape
        return f"its scorer fails with {type(error).__name__}: {error}"
    return None if found == expected else f"its own answer scores {found} instead of {expected}"


def _main() -> int:
    """The child: a source's JSON on standard input, its rows' JSON on standard output, what is printed beside it."""
    source = ProceduralSource.model_validate_json(sys.stdin.read())
    with contextlib.redirect_stdout(sys.stderr):
        try:
            rows = _kept_rows(source.dataset, *_generate(source))
        except TaskSourceError as error:
            sys.stderr.write("\n" + " ".join(str(error).split()) + "\n")
            return _REFUSED
    sys.stdout.write(json.dumps(rows))
    return 0


if __name__ == "__main__":
    sys.exit(_main())
