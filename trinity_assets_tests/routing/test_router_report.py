"""The page about a router: whole in one file, and with names of strangers in it."""

from __future__ import annotations

import re

import numpy as np
import pytest

from trinity_assets.routing.evaluation import evaluate
from trinity_assets.routing.head import BestSingle
from trinity_assets.routing.report import markdown_report
from trinity_assets.routing.router_report import RouterReport, router_pictures
from trinity_assets.routing.trainers.head import TrainingRecord
from trinity_assets_tests.routing.planted import features, planted_scores, table_of

HOSTILE = ["<script>alert(1)</script>", "a|b", "![x](http://evil.example/p.png)"]

ODD = ["__init__", r"$\frac{$", "*x* `c` &amp; ![p](data:image/png;base64,AAAA)"]


def record(**chosen: object) -> TrainingRecord:
    history = tuple({"generation": one, "best": 0.6, "mean": 0.5, "sigma": 0.5} for one in (1, 2))
    return TrainingRecord(settings={}, chosen=chosen, reward=0.6, history=history, evaluations=2)


def a_report(workers: list[str]) -> RouterReport:
    drawn = features(300, 8)
    scores, _ = planted_scores(drawn, 3)
    table = table_of(scores, workers)
    head = np.linalg.lstsq(drawn.astype(float), scores, rcond=None)[0].T
    evaluation = evaluate(table, drawn, {"sep_cma_es": head, "sep_cma_es@2": head[::-1]}, workers, resamples=50)
    records = {"sep_cma_es": record(), "sep_cma_es@2": record(cost_weight=2.0)}
    return RouterReport(
        title="The router small & fast",
        published="**To be published:** the head of sep_cma_es.",
        headroom="- **Something to route**: yes.\n",
        evaluation=evaluation,
        pictures=router_pictures(evaluation, table, records, BestSingle(worker=workers[0], reward=0.4)),
        facts={"table": "`0123`"},
    )


@pytest.fixture(scope="module")
def report() -> RouterReport:
    return a_report(["ada", "bob", "cyd"])


def test_each_picture_stands_in_its_section(report):
    page = report.markdown({picture.name: f"{picture.name}.png" for picture in report.pictures})
    sections = dict(re.findall(r"^## (.*)\n((?:(?!## ).*\n)*)", page, re.MULTILINE))
    placed = {heading: re.findall(r"!\[.*\]\((.*)\.png\)", body) for heading, body in sections.items()}
    assert {heading: names for heading, names in placed.items() if names} == {
        "What could be gained": ["solve_rates"],
        "Against the best single worker": ["comparison"],
        "Whom it asks": ["shares", "chosen_sep_cma_es"],
        "Quality against cost": ["frontier"],
        "Training": ["convergence_sep_cma_es"],
    }
    assert "- **Something to route**: yes." in sections["What could be gained"]
    assert sections["What it was made from"].strip() == "- table: `0123`"


def test_a_page_without_pictures_has_no_empty_section(report):
    page = report.markdown({})
    assert "![" not in page and "## Training" not in page
    for body in markdown_report(report.evaluation).split("### ")[1:]:
        assert body.strip() in page


def test_the_html_is_whole_in_one_file(report):
    page = report.html()
    assert "<title>The router small &amp; fast</title>" in page
    assert page.count("<img ") == page.count('<img src="data:image/png;base64,') == len(report.pictures)
    assert not re.search(r"<(script|link|iframe|object)|(src|href)=\"(?!data:)", page)
    exported = report.evaluation.policy("sep_cma_es")
    assert f"<td>{exported.accuracy:.1%}</td>" in page


def test_names_of_strangers_are_shown_and_not_obeyed():
    page = a_report(HOSTILE).html()
    assert "<script" not in page and "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "evil.example" in page and not re.search(r"(src|href)=\"(?!data:)", page)
    assert "<th>a|b</th>" in page


def test_what_looks_like_markup_or_mathematics_is_a_name():
    report = a_report(ODD)
    page = report.html()
    for shown in ("<th>__init__</th>", r"<th>$\frac{$</th>", "*x* `c` &amp;amp; ![p](data:image/png;base64,AAAA)</th>"):
        assert shown in page
    assert page.count("<img ") == len(report.pictures)
    assert not re.search(r"<(em|code|strong)>(init|x|c)<", page)
