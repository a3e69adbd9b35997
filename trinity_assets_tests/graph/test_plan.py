"""``trinity-assets plan``: what is printed, by what is there, and that nothing is asked or written for it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from trinity_assets import cli
from trinity_assets.defs import present_snapshots
from trinity_assets.workers.epochs import enter_epoch
from trinity_assets.workers.ledger import Ledger
from trinity_assets_tests.graph.scripted_models import TASKS
from trinity_assets_tests.graph.small_catalog import Site

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """``trinity-assets`` with these arguments, in this process: its exit status, and all that it says."""

    def start(*arguments: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["trinity-assets", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out + said.err

    return start


def rows(printed: str) -> list[list[str]]:
    """The rows of the printed tables, without their headings and lines."""
    return [line.split() for line in printed.splitlines() if any(cell in line for cell in ("/24 ", "/12 "))]


def test_before_anything_is_there_nothing_is_written(
    empty_site: Site, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "nobody_was_here"
    monkeypatch.setenv("TRINITY_HOME", str(home))
    monkeypatch.delenv("DAGSTER_HOME")
    status, said = run("plan")
    assert status == 0 and not home.exists() and empty_site.server.count() == 0
    assert [row[:4] for row in rows(said)] == [
        [worker, benchmark, f"{count}/{count}", "guess"]
        for worker in ("direct", "terse", "long")
        for benchmark, count in (("sums", 24), ("capitals", 12))
    ]


def test_after_a_part_was_built_the_rest_is_planned_by_it(
    empty_site: Site, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty_site.catalog.edit(
        "workers.yaml", "sampling: {max_tokens: 32}", "sampling: {max_tokens: 32}\n    budget_usd: 1"
    )
    empty_site.build('key:"benchmarks/*" or key:"answers/direct/sums"')
    empty_site.new_requests()
    monkeypatch.setattr(present_snapshots, "take_snapshot", None)  # what is built is read from the store
    status, said = run("plan")
    # The scripted provider counts 10 tokens in and 5 out for everything; what it never saw is guessed from characters.
    guess = {
        (worker, benchmark): sum(len(before + task.question + after) // 3 for task in TASKS[benchmark][:count])
        for worker, before in (("direct", ""), ("terse", "Be brief."), ("long", "Think step by step. "))
        for benchmark, count, after in (("sums", 24, " Give a number."), ("capitals", 12, ""))
    }

    def usd(tokens_in: int, tokens_out: int, price_in: float, price_out: float) -> str:
        return f"{(tokens_in * price_in + tokens_out * price_out) / 1e6:.4f}"

    capitals, sums = guess["long", "capitals"], guess["long", "sums"]
    assert rows(said) == [
        ["direct", "sums", "0/24", "-", "0", "0", "0", "0", "0"],
        ["direct", "capitals", "12/12", "worker", f"{guess['direct', 'capitals']}", "60",
         usd(guess["direct", "capitals"], 60, 1, 2), usd(guess["direct", "capitals"], 12 * 32, 1, 2), "<0.1"],
        ["terse", "sums", "24/24", "guess", "240", "192",
         usd(240, 192, 0.5, 0.5), usd(guess["terse", "sums"], 192, 0.5, 0.5), "1.0"],
        ["terse", "capitals", "12/12", "guess", f"{guess['terse', 'capitals']}", "96",
         *[usd(guess["terse", "capitals"], 96, 0.5, 0.5)] * 2, "0.5"],
        ["long", "sums", "24/24", "guess", "240", "1,536", usd(240, 1536, 3, 9), usd(sums, 1536, 3, 9), "1.0"],
        ["long", "capitals", "12/12", "guess", f"{capitals}", "768", *[usd(capitals, 768, 3, 9)] * 2, "0.5"],
    ]  # fmt: skip
    assert status == 0 and empty_site.new_requests() == {}
    assert "The budget of worker direct in an epoch is 1.00 USD, of which 0.0005 is spent: it suffices." in said


def test_a_selection_and_recorded_workers(empty_site: Site, run: Run) -> None:
    tasks = [f'{{"id": "capitals_{number:02d}", "score": 1}}' for number in range(12)]
    (empty_site.catalog.directory / "log.jsonl").write_text("\n".join(tasks))
    empty_site.catalog.edit(
        "workers.yaml",
        "prompts:",
        "  logged:\n    recorded: {capitals: {path: log.jsonl, task: {id: id}, score: score}}\nprompts:",
    )
    empty_site.catalog.edit("workers.yaml", "[direct, terse, long]", "[direct, terse, long, logged]")
    empty_site.catalog.edit("routers.yaml", "[sums, capitals]", "[capitals]")
    status, said = run("plan", "tag:worker=terse or tag:worker=logged")
    assert status == 0
    assert [row[:3] for row in rows(said)] == [["terse", "capitals", "12/12"]]
    assert "1 recorded worker is not listed" in said
    assert "The selection holds no answers of a worker that is asked." in run("plan", "tag:worker=logged")[1]


def test_a_budget_that_will_not_do_and_a_price_that_nobody_knows(empty_site: Site, run: Run) -> None:
    (empty_site.catalog.directory / "operations.yaml").write_text("budget: {run_usd: 0.001}\n")
    empty_site.catalog.edit("workers.yaml", "    price: {input_per_mtok: 0.5, output_per_mtok: 0.5}\n", "")
    status, said = run("plan")
    assert status == 0
    assert [row[6:8] for row in rows(said) if row[0] == "terse"] == [["unknown", "unknown"]] * 2
    assert "No price is known of terse, so a build with a budget does not ask there" in said
    assert "The budget of a build is 0.0010 USD: it will not suffice" in said


def test_what_asking_again_takes(empty_site: Site, run: Run) -> None:
    """All of a complete cell, and the rest of an epoch that is not finished, which is gone on with."""
    empty_site.build('key:"benchmarks/*" or key:"answers/direct/*" or key:"answers/terse/sums"')
    with Ledger(f"sqlite:///{empty_site.home / 'ledger.sqlite'}") as ledger:
        enter_epoch(ledger, "direct", "sums", by="r2", new="this week")
    selection = "tag:worker=direct or tag:worker=terse"
    assert [row[:3] for row in rows(run("plan", selection)[1])] == [
        ["direct", "sums", "24/24"],
        ["direct", "capitals", "0/12"],
        ["terse", "sums", "0/24"],
        ["terse", "capitals", "12/12"],
    ]
    assert {row[2] for row in rows(run("plan", "--again", selection)[1])} == {"24/24", "12/12"}
    said = run("rebaseline", "--dry-run", selection)[1]
    assert [line for line in said.splitlines() if "answers/direct" in line] == [
        "  answers/direct/capitals",
        "  answers/direct/sums   goes on with 'this week'",
    ]
    assert said.endswith(f"What it will take: trinity-assets plan --again {selection!r}\n")


def test_no_plan_is_offered_where_only_sentinels_are_asked(empty_site: Site, run: Run) -> None:
    (empty_site.catalog.directory / "operations.yaml").write_text("sentinel: {tasks: 6}\n")
    said = run("rebaseline", "--dry-run", 'key:"sentinels/*"')[1]
    assert "  sentinels/direct/answers\n" in said and "plan --again" not in said
