"""The page of nine models: its files read in place, what it says of them, and that it says the same again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from studies import kept_features, llmrouter
from studies.kept_features import kept_features as features_of
from studies.llmrouter import Study
from studies.published_outcomes import FOLDER, among, dominated_pool, read_published
from studies.repeated_splits import PUBLISHED, over_splits
from trinity_assets.backbones.specs import BackboneSpec, Directory, FeatureSpec, WeightsIdentity
from trinity_assets.backbones.weights import ResolvedWeights
from trinity_assets.errors import TrainingError
from trinity_assets.routing.fitting import fit_router
from trinity_assets.routing.specs import RouterTraining
from trinity_assets.routing.table import cost_matrix, score_matrix, table_workers
from trinity_assets_tests.routing.planted import WORKERS, features, planted_scores, table_of

N, HIDDEN = 240, 8

QUICK = Study(trainers={"ridge": {}}, training_seeds=1, splits={"ridge": 2}, cost_weights=(0.1,))

SPEC = FeatureSpec(
    weights=WeightsIdentity(source="some/weights", sha256="0" * 64),
    hidden_size=HIDDEN,
    transcript="raw",
    position=-2,
    dtype="float32",
    max_tokens=64,
    overlong="keep_tail",
)

MODELS = {"weak": 0.1, "strong": 0.9, "apt": 0.3}
"""The models of the small files, with their price."""


def two_benchmarks() -> tuple[pd.DataFrame, np.ndarray]:
    """Scores of the three models on gsm8k and mbpp, and features that know who is right.

    Strong is better than weak on either benchmark, and apt is right on what both get wrong.
    """
    drawn = features(N, HIDDEN)
    alone = drawn[:, 1] > 0.4
    strong = np.where(alone, 0.0, 1.0)
    weak = np.where(np.arange(N) % 3 == 0, strong, 0.0)
    scores = pd.DataFrame({"weak": weak, "strong": strong, "apt": alone.astype(float)})
    scores.insert(0, "task_name", np.where(np.arange(N) < N // 2, "gsm8k", "mbpp"))
    return scores, drawn


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of data with files of LLMRouter's form: those tasks, and one of a benchmark that is left out."""
    root = tmp_path_factory.mktemp("data")
    folder = root / FOLDER
    folder.mkdir(parents=True)
    scores, _ = two_benchmarks()
    scores = pd.concat([pd.DataFrame([{"task_name": "trivia_qa", "weak": 1, "strong": 0.5, "apt": 0}]), scores])
    scores.insert(1, "task_id", "")
    scores.insert(2, "query_file", ["test", *["train"] * N])
    scores.insert(3, "query_line", [0, *range(N)])
    scores.insert(4, "dc_split", "train")
    scores.to_csv(folder / "solve_table.csv", index=False)
    queries = [{"query": f"What does\u2028number {line} times {line * line + 7} make?"} for line in range(N)]
    for part, rows in {"train": queries, "test": [{"query": "Who?"}]}.items():
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / f"default_query_{part}.jsonl").write_text(text, encoding="utf-8")
    prices = {name: {"input_price": price, "output_price": price} for name, price in MODELS.items()}
    (folder / "default_llm.json").write_text(json.dumps(prices | {"other": {}}))
    return root


def test_the_files_are_one_table_with_questions_and_list_prices(data: Path) -> None:
    outcomes = read_published(data / FOLDER)
    expected, _ = two_benchmarks()
    assert table_workers(outcomes.table) == list(MODELS)
    np.testing.assert_array_equal(score_matrix(outcomes.table, list(MODELS)), expected[list(MODELS)])
    assert list(outcomes.table["benchmark"].unique()) == ["gsm8k", "mbpp"]
    assert outcomes.task_ids[3] == "train/3"
    assert outcomes.questions is not None
    assert outcomes.questions[3] == "What does\u2028number 3 times 16 make?"
    # 1000 answers of 1000 tokens are a million tokens.
    np.testing.assert_allclose(1000 * cost_matrix(outcomes.table, list(MODELS))[0], list(MODELS.values()))


def test_files_that_are_missing_or_do_not_fit_are_refused(data: Path, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=f"name the directory that holds {FOLDER}"):
        read_published(tmp_path)
    for file in (data / FOLDER).iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "default_llm.json").write_text('{"weak": {"input_price": 1, "output_price": 1}}')
    with pytest.raises(TrainingError, match="KeyError\\('strong'\\)"):
        read_published(tmp_path)


def test_the_best_worker_dominates_those_that_it_beats_on_every_benchmark(data: Path) -> None:
    table = read_published(data / FOLDER).table
    assert dominated_pool(table) == ["weak", "strong", "apt"]
    elsewhere = table.assign(score__apt=np.where(table["benchmark"] == "mbpp", 1.0, 0.0))
    assert dominated_pool(elsewhere) == ["weak", "strong"]
    assert table_workers(among(elsewhere, ["weak", "strong"])) == ["weak", "strong"]
    with pytest.raises(TrainingError, match="'strong' beats no other worker on every benchmark"):
        dominated_pool(among(elsewhere, ["strong", "apt"]))


def test_questions_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a backbone that makes its features of the questions' lengths, and whose rounding is the graph's."""
    read: list[list[str]] = []

    class Lengths:
        def extract(self, questions: list[str]) -> np.ndarray:
            read.append(questions)
            return np.array([[len(question) + 0.0001] * HIDDEN for question in questions], dtype=np.float32)

    resolved = ResolvedWeights(tmp_path, (), "0" * 64, HIDDEN, "some/weights")
    monkeypatch.setattr(kept_features, "resolve_weights", lambda _weights: resolved)
    monkeypatch.setattr(kept_features, "load_backbone", lambda _spec, _resolved: Lengths())
    backbone = BackboneSpec(name="lengths", weights=Directory(path=str(tmp_path)), max_tokens=64)
    asked = ["one", "three"]
    for _ in range(2):
        found, spec = features_of(backbone, asked, tmp_path / "cache")
        assert (found.dtype, spec) == (np.float32, SPEC)
        np.testing.assert_array_equal(found, [[3.0] * HIDDEN, [5.0] * HIDDEN])
    assert read == [asked]
    other = backbone.model_copy(update={"position": -1})
    for changed, questions in ((backbone, asked[::-1]), (other, asked)):
        features_of(changed, questions, tmp_path / "cache")
    assert read == [asked, asked[::-1], asked]


def test_over_splits_counts_the_words_of_each_policy() -> None:
    drawn = features(N, HIDDEN)
    scores, _ = planted_scores(drawn, len(WORKERS))
    found = {one.policy: one for one in over_splits(table_of(scores, WORKERS), drawn, {"ridge": 2, "constant": 1})}
    assert list(found) == ["ridge", "constant", "random", "lookup", "knn", PUBLISHED]
    assert found["ridge"].words == {"win": 2}
    assert (found["ridge"].passed, found["constant"].passed, found["lookup"].passed) == (2, 0, None)
    assert found[PUBLISHED].differences == found["ridge"].differences
    assert (found["constant"].differences, found["constant"].verdicts) == ((0.0,), ("tie",))
    assert len(found["knn"].differences) == 2


def test_over_splits_publishes_the_best_single_worker_where_nothing_is_gained() -> None:
    scores = np.tile([0.0, 1.0, 0.0], (N, 1))
    published = over_splits(table_of(scores, WORKERS), features(N, HIDDEN), {"ridge": 2})[-1]
    assert (published.differences, published.words) == ((0.0, 0.0), {"tie": 2})


def test_the_page_is_made_by_one_command_and_again_the_same(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, drawn = two_benchmarks()
    monkeypatch.setattr(llmrouter, "STUDY", QUICK)
    monkeypatch.setattr(llmrouter, "kept_features", lambda backbone, _questions: (drawn, SPEC))
    written = [tmp_path / "one.md", tmp_path / "other.md"]
    for target in written:
        assert llmrouter.main([str(data), str(target)]) == 0
    text = written[0].read_text(encoding="utf-8")
    assert text == written[1].read_text(encoding="utf-8")
    unwrapped = " ".join(text.split())
    assert "points above always asking strong" in unwrapped
    assert "What would be published is the head of ridge." in unwrapped
    assert "gsm8k 120, mbpp 120" in unwrapped
    assert "(weak, apt)" in unwrapped
    assert "| ridge | 2 | 2 | 0 | 0 |" in text
    assert "| ridge@0.1 |" in text
    assert "number 3 times" not in text
    assert "train/3" not in text


def test_a_directory_without_the_files_ends_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert llmrouter.main([str(tmp_path), str(tmp_path / "page.md")]) == 1
    assert FOLDER in capsys.readouterr().err
    assert not (tmp_path / "page.md").exists()


def test_of_a_dominated_pool_of_real_models_the_best_is_published_always(shared_data: Callable[[str], Path]) -> None:
    """Narrow features in place of hidden states, which know the benchmark and with it all that a lookup could know."""
    table = read_published(shared_data(FOLDER)).table
    pool = dominated_pool(table)
    best = "llama-3.3-nemotron-super-49b-v1"
    assert best in pool
    assert len(pool) == 7
    noise = features(len(table), 8)
    benchmarks = pd.get_dummies(table["benchmark"]).to_numpy(dtype=np.float32)
    training = RouterTraining.model_validate(
        {"trainers": {"ridge": {}, "constant": {}}, "export": "ridge", "training_seeds": 1}
    )
    fitted = fit_router(among(table, pool), np.hstack([noise, benchmarks]), training)
    assert fitted.policy == f"always {best}"
    assert not any(gate.passed for gate in fitted.evaluation.gates)
