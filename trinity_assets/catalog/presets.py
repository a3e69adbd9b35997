"""Presets: what is the same for everybody who brings a well-known benchmark."""

from __future__ import annotations

from dataclasses import dataclass

from trinity_assets.benchmarks.specs import FieldMapping
from trinity_assets.grading.specs import (
    ChoiceGrader,
    GraderSpec,
    MathGrader,
    NumberGrader,
    ProceduralGrader,
    PythonFunctionGrader,
)


@dataclass(frozen=True)
class Preset:
    """The field mapping, prompt template and grader of a benchmark."""

    fields: FieldMapping
    prompt: str
    grader: GraderSpec


_CHOICE_PROMPT = "{question}\n\nGive the label of the right option on a last line, as in: Answer: B"

PRESETS: dict[str, Preset] = {
    # allenai/ai2_arc, both parts. Some tasks label their options 1 to 4.
    "arc": Preset(
        FieldMapping(id="id", question="question", choices="choices", gold={"answer": "answerKey"}),
        _CHOICE_PROMPT,
        ChoiceGrader(kind="choice"),
    ),
    "humaneval": Preset(
        FieldMapping(
            id="task_id",
            question="prompt",
            gold={"prompt": "prompt", "test": "test", "entry_point": "entry_point"},
        ),
        "Complete this Python function. Answer with the whole function in one code block.\n\n{question}",
        PythonFunctionGrader(kind="python_function"),
    ),
    "gsm8k": Preset(
        FieldMapping(id=None, question="question", gold={"answer": "answer"}),
        "{question}\n\nThink step by step, then give the final number on a last line that starts with ####.",
        NumberGrader(kind="number"),
    ),
    # The JSON Lines of openai/prm800k, as HuggingFaceH4/MATH-500 has them.
    "math500": Preset(
        FieldMapping(id="unique_id", question="problem", category="subject", gold={"answer": "answer"}),
        "{question}\n\nThink step by step, then give the final answer within \\boxed{{}}.",
        MathGrader(kind="math"),
    ),
    # The sanitized part. Its questions leave the function's name and arguments to the tests, so these are shown.
    "mbpp": Preset(
        FieldMapping(id="task_id", question="prompt", gold={"tests": "test_list", "imports": "test_imports"}),
        "{question}\n\nThe program has to pass these tests:\n\n{test_list}\n\n"
        "Answer with the whole program in one code block.",
        PythonFunctionGrader(kind="python_function"),
    ),
    # cais/mmlu. The original CSV files hold one option a column: `fields: {choices: [A, B, C, D]}`.
    "mmlu": Preset(
        FieldMapping(id=None, question="question", category="subject", choices="choices", gold={"answer": "answer"}),
        _CHOICE_PROMPT,
        ChoiceGrader(kind="choice"),
    ),
}

GENERATED = Preset(
    FieldMapping(id="id", question="question", category="dataset", gold={"dataset": "dataset", "entry": "entry"}),
    "{question}\n\nGive nothing but the final answer between <answer> and </answer>.",
    ProceduralGrader(kind="procedural"),
)
"""What holds for every data set of a procedural source, which needs no preset's name."""
