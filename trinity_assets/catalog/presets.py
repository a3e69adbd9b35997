"""Presets: what is the same for everybody who brings a well-known benchmark."""

from __future__ import annotations

from dataclasses import dataclass

from trinity_assets.benchmarks.specs import FieldMapping
from trinity_assets.grading.specs import GraderSpec, NumberGrader, PythonFunctionGrader


@dataclass(frozen=True)
class Preset:
    """The field mapping, prompt template and grader of a benchmark."""

    fields: FieldMapping
    prompt: str
    grader: GraderSpec


PRESETS: dict[str, Preset] = {
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
}
