"""Everything about one router on one page: what it could gain, what it gained, what would be published, with pictures.

The page is Markdown; the HTML is that Markdown with its pictures inside, so that one file can be sent around.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from trinity_assets.routing.head import BestSingle
from trinity_assets.routing.plots import (
    chosen_plot,
    comparison_plot,
    convergence_plot,
    frontier_plot,
    shares_plot,
    solve_rates_plot,
)
from trinity_assets.routing.report import ASKED, COST, SUMMARY, TRAINING, report_sections
from trinity_assets.routing.results import Evaluation
from trinity_assets.routing.trainers.head import TrainingRecord
from trinity_assets.texts import in_markdown

GAIN = "What could be gained"
"""The section about the headroom."""


@dataclass(frozen=True)
class Picture:
    """A PNG of a router, with the section of the report that it belongs to."""

    name: str
    caption: str
    section: str
    png: bytes


@dataclass(frozen=True)
class RouterReport:
    """A router's report before it is written.

    Attributes:
        title: of the page.
        published: what is, or would be, published and why, in a sentence of Markdown.
        headroom: Markdown, "" if it was not looked at.
        facts: what the router was made from, by name.
    """

    title: str
    published: str
    headroom: str
    evaluation: Evaluation
    pictures: Sequence[Picture]
    facts: Mapping[str, str]

    def markdown(self, targets: Mapping[str, str]) -> str:
        """The page; each picture is an image at the target of its name, and one without a target is left out."""
        facts = "\n".join(f"- {name}: {value}" for name, value in self.facts.items())
        bodies = {GAIN: self.headroom.rstrip()} | report_sections(self.evaluation) | {TRAINING: ""}
        sections = [self._section(heading, body, targets) for heading, body in bodies.items()]
        made_from = [f"## What it was made from\n\n{facts}"] if facts else []
        return "\n\n".join([f"# {self.title}", self.published, *filter(None, sections), *made_from]) + "\n"

    def html(self) -> str:
        """The page as one HTML file that refers to nothing outside itself and runs nothing."""
        from markdown_it import MarkdownIt

        inside = {picture.name: f"{_EMBEDDED}{base64.b64encode(picture.png).decode()}" for picture in self.pictures}
        # Names come from catalogs and tables of strangers: what looks like HTML or a link in them is shown, not obeyed.
        rendering = MarkdownIt("commonmark", {"html": False}).enable("table")
        rendering.validateLink = lambda url: url.startswith(_EMBEDDED)  # type: ignore[method-assign]
        body = rendering.render(self.markdown(inside))
        return _PAGE.format(title=html.escape(self.title), style=_STYLE, body=body)

    def _section(self, heading: str, body: str, targets: Mapping[str, str]) -> str:
        images = [
            f"![{in_markdown(picture.caption)}]({targets[picture.name]})"
            for picture in self.pictures
            if picture.section == heading and picture.name in targets
        ]
        parts = [part for part in (body, *images) if part]
        return "\n\n".join([f"## {heading}", *parts]) if parts else ""


def router_pictures(
    evaluation: Evaluation, table: pd.DataFrame, records: Mapping[str, TrainingRecord], best_single: BestSingle
) -> list[Picture]:
    """All that can be drawn of a router; ``records`` say how its heads came about.

    Of heads at cost weights, which are many and alike, only the frontier is drawn.
    """
    own = {name: record for name, record in records.items() if "cost_weight" not in record.chosen}
    pictures = [
        Picture("comparison", "heads against the baselines, with intervals", SUMMARY, comparison_plot(evaluation)),
        Picture("solve_rates", "solve rate per worker and category", GAIN, solve_rates_plot(table, evaluation.workers)),
        Picture("shares", "share of the questions that each worker gets", ASKED, shares_plot(evaluation)),
    ]
    pictures += [
        Picture(f"chosen_{name}", f"whom {name} asks, against who is best", ASKED, chosen_plot(evaluation, name))
        for name in own
    ]
    if evaluation.frontier is not None:
        pictures.append(Picture("frontier", "accuracy against cost", COST, frontier_plot(evaluation)))
    pictures += [
        Picture(
            f"convergence_{name}",
            f"reward per generation of {name}",
            TRAINING,
            convergence_plot(name, record, best_single),
        )
        for name, record in own.items()
        if record.per_generation
    ]
    return pictures


_EMBEDDED = "data:image/png;base64,"

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{body}</body>
</html>
"""

_STYLE = """
body { max-width: 62rem; margin: 2.5rem auto; padding: 0 1.5rem; color: #1f2933; background: #fff;
  font: 15px/1.55 system-ui, sans-serif; }
h1 { font-size: 1.7rem; margin: 0 0 1rem; }
h1 + p { padding: .7rem 1rem; border-left: 4px solid #2a6f97; background: #f4f7fa; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; border-bottom: 1px solid #e4e7eb; padding-bottom: .3rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; margin: .8rem 0; font-size: .87rem;
  font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #e4e7eb; text-align: left; white-space: nowrap; }
th { color: #52606d; font-weight: 600; }
img { display: block; max-width: 100%; margin: 1.2rem 0; }
ul { padding-left: 1.2rem; }
code { font-size: .85em; overflow-wrap: anywhere; }
@media print { body { margin: 0; max-width: none; } h2 { break-after: avoid; } img, tr { break-inside: avoid; } }
"""
