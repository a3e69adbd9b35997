"""``docs/llmrouter.md``: every router on the outcomes of nine public models, in a table with intervals.

Run: ``make llmrouter-table DATA=...``, or ``python -m studies.llmrouter DATA PAGE``, where ``DATA`` is the directory
that holds ``recorded/llmrouter_9models``. Only aggregates are written: no question, no task's score. Equal files and
features give the same bytes. Reading the questions takes some twenty minutes on two cores, once; the rest, minutes.
"""

from __future__ import annotations

import argparse
import logging
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from studies.kept_features import kept_features
from studies.published_outcomes import FOLDER, NOMINAL_TOKENS, among, dominated_pool, read_published
from studies.repeated_splits import PUBLISHED, OverSplits, over_splits
from trinity_assets.backbones.specs import FeatureSpec
from trinity_assets.catalog.catalog import DEFAULT_CATALOG
from trinity_assets.catalog.loading import load_catalog
from trinity_assets.errors import TrinityError
from trinity_assets.routing.fitting import FittedRouter, fit_router
from trinity_assets.routing.headroom_report import headroom_markdown
from trinity_assets.routing.report import COST, SUMMARY, markdown_report, points, report_sections
from trinity_assets.routing.specs import RouterTraining
from trinity_assets.routing.table import table_workers
from trinity_assets.texts import counted

ROUTER = "starter"
"""The router of the embedded catalog whose backbone reads the questions."""

EXPORTED = "ridge"

WIDTH = 120
"""Of a line of prose."""


@dataclass(frozen=True)
class Study:
    """What is run. ``splits`` are how many each trainer is judged on, and ``cost_weights`` those of the cost sweep."""

    trainers: Mapping[str, Mapping[str, Any]]
    training_seeds: int
    splits: Mapping[str, int]
    cost_weights: tuple[float, ...]


STUDY = Study(
    trainers={EXPORTED: {}, "sep_cma_es": {}, "constant": {}},
    training_seeds=3,
    splits={EXPORTED: 20, "sep_cma_es": 5},
    cost_weights=(0.02, 0.05, 0.1, 0.2, 0.5),
)


def page(table: pd.DataFrame, features: np.ndarray, made_with: str, study: Study) -> str:
    """The page as Markdown.

    Args:
        table: the outcomes, as ``published_outcomes`` reads them.
        features: (n, H), aligned to its rows.
        made_with: what the features are, in words.

    Raises:
        TrainingError: a trainer cannot learn from the table, or no pool of it is dominated.
    """
    pool = dominated_pool(table)
    fitted = fit_router(table, features, _training(study))
    swept = fit_router(table, features, _training(study, (EXPORTED,), study.cost_weights))
    dominated = fit_router(among(table, pool), features, _training(study))
    repeated = over_splits(table, features, study.splits)
    parts = [
        "# Routers on nine models",
        _prose(_OPENING),
        _prose(_result(fitted, repeated)),
        "## The data",
        *_data(table, made_with),
        "## What could be gained",
        headroom_markdown(fitted.headroom).rstrip(),
        "## All routers on one split",
        _prose(_HOW_TO_READ),
        markdown_report(fitted.evaluation).rstrip(),
        "## The same on other splits",
        *_over_splits(repeated, study),
        "## Heads that weigh cost",
        _prose(_SWEPT),
        *(report_sections(swept.evaluation).get(heading, "") for heading in (SUMMARY, COST)),
        "## A pool with nothing to route",
        *_dominated(dominated, pool),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


_OPENING = (
    "Made by `make llmrouter-table DATA=...` with this project's own code, and not edited by hand. What came out is "
    "here as it came out; where the interval of a difference covers zero, the word is tie."
)

_HOW_TO_READ = (
    "Accuracy is on held-out tasks only. All differences are to the single worker that was best on train, on the same "
    "tasks, with 95% intervals of a paired bootstrap. `lookup` is told which benchmark a question is from, which the "
    "heads have to see for themselves; `hindsight` and `oracle` look at the answers and are bounds, not routers."
)

_SWEPT = (
    "`ridge@w` is ridge on a reward of score minus cost, where 1 USD per 1000 answers is worth a score of w. The split "
    "is that of the table above."
)


def _training(
    study: Study, trainers: Sequence[str] | None = None, cost_weights: tuple[float, ...] = ()
) -> RouterTraining:
    """A router of some of the study's ``trainers``, by default all."""
    return RouterTraining.model_validate(
        {
            "trainers": {name: dict(study.trainers[name]) for name in trainers or study.trainers},
            "export": EXPORTED,
            "training_seeds": study.training_seeds,
            "cost_weights": cost_weights,
        }
    )


def _result(fitted: FittedRouter, repeated: Sequence[OverSplits]) -> str:
    evaluation = fitted.evaluation
    head = evaluation.policy(EXPORTED)
    again = next(one for one in repeated if one.policy == EXPORTED)
    return (
        f"**On {evaluation.n_test} held-out tasks {EXPORTED} is {points(head.difference)} points above always asking "
        f"{evaluation.reference_worker} ({points(head.low)} to {points(head.high)}): {head.verdict}.** What would be "
        f"published is {fitted.policy}. Over {counted(len(again.verdicts), 'split')} it is "
        f"{points(float(np.mean(again.differences)))} points above on average; the word is win on "
        f"{again.words['win']}, tie on {again.words['tie']} and loss on {again.words['loss']} of them."
    )


def _data(table: pd.DataFrame, made_with: str) -> list[str]:
    tokens = " and ".join(f"{count} {side}" for side, count in NOMINAL_TOKENS.items())
    counts = table["benchmark"].value_counts(sort=False)
    return [
        _prose(
            f"What {counted(len(table_workers(table)), 'model')} scored on {len(table):,} queries, each once, from "
            "[LLMRouter](https://github.com/ulab-uiuc/LLMRouter) (ulab-uiuc, MIT licence), read in place and not part "
            f"of this project: {', '.join(f'{name} {count}' for name, count in counts.items())}. A score is 1 for "
            "right or 0 for wrong. Questions that are nearly the same stay on one side of the split."
        ),
        _prose(
            f"A feature is {made_with}. The file has no token counts: costs are list prices of {tokens} tokens for "
            "each answer, whoever gives it, so they compare prices and know nothing of lengths."
        ),
    ]


def _over_splits(repeated: Sequence[OverSplits], study: Study) -> list[str]:
    """The table of what came out over splits, and how to read it."""
    headings = ["policy", "splits", "win", "tie", "loss", "mean difference", "lowest to highest", "gate passed"]
    rows = [
        [
            one.policy,
            str(len(one.verdicts)),
            *(str(one.words[word]) for word in ("win", "tie", "loss")),
            points(float(np.mean(one.differences))),
            f"{points(min(one.differences))} to {points(max(one.differences))}",
            "-" if one.passed is None else f"{one.passed} of {len(one.verdicts)}",
        ]
        for one in repeated
    ]
    cut = "; ".join(f"{name} with {counted(count, 'seed')}" for name, count in study.splits.items())
    return [
        _prose(
            f"One split says little, so the same tasks are cut by the seeds 0, 1, ... of the split as well: {cut}. "
            f"`{PUBLISHED}` is what the gate would publish of {EXPORTED}: its head, or the best single worker, always. "
            "The splits share their tasks, so their counts are no independent trials and their spread is no interval."
        ),
        "\n".join("| " + " | ".join(row) + " |" for row in [headings, ["---"] * len(headings), *rows]),
    ]


def _dominated(fitted: FittedRouter, pool: Sequence[str]) -> list[str]:
    best = fitted.headroom.best_single
    others = ", ".join(worker for worker in pool if worker != best)
    return [
        _prose(
            f"The rule: the best single worker of all tasks, {best}, with those that it beats on every benchmark "
            f"({others}). Single questions that another one solves remain, but no benchmark to send there. "
            f"What would be published is **{fitted.policy}**."
        ),
        headroom_markdown(fitted.headroom).rstrip(),
        report_sections(fitted.evaluation)[SUMMARY],
        "\n".join(
            f"- {gate.trainer} {'passed' if gate.passed else 'did not pass'} the gate: {gate.reason}."
            for gate in fitted.evaluation.gates
        ),
    ]


def _prose(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def _in_words(spec: FeatureSpec) -> str:
    return (
        f"the hidden state at token {spec.position} of the question, {spec.hidden_size} numbers, in "
        f"{spec.weights.source} (sha256 {spec.weights.sha256[:12]}, {spec.dtype}, transcript {spec.transcript}), the "
        "backbone of the embedded catalog"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m studies.llmrouter", description="Write docs/llmrouter.md.")
    parser.add_argument("data", type=Path, help=f"the directory that holds {FOLDER}")
    parser.add_argument("page", type=Path, help="the Markdown file to write")
    given = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        outcomes = read_published(given.data / FOLDER)
        backbone = load_catalog(DEFAULT_CATALOG).routers[ROUTER].backbone
        features, spec = kept_features(backbone, outcomes.questions or ())
        given.page.write_text(page(outcomes.table, features, _in_words(spec), STUDY), encoding="utf-8")
    except TrinityError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
