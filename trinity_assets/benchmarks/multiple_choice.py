"""Multiple choice: a row's options as texts with labels, shown below the question, and the right one's label."""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import Any

from trinity_assets.benchmarks.formats import Row


@dataclass(frozen=True)
class Options:
    """The options of one task, in order, and the label of each."""

    texts: list[str]
    labels: list[str]

    def shown_below(self, question: str) -> str:
        """What a user would ask: the question, an empty line, and one line for each option."""
        lines = [f"{label}. {text}" for label, text in zip(self.labels, self.texts, strict=True)]
        return question + "\n\n" + "\n".join(lines)

    def right_label(self, answer: Any) -> str:
        """The label of the option that ``answer`` names: by index from 0, by label or, where no label, by text.

        Raises:
            ValueError: it names none of them, or several, or is a number that is both an index and another's label.
        """
        if isinstance(answer, int) and not isinstance(answer, bool):
            if str(answer) in self.labels and self.labels.index(str(answer)) != answer:
                raise ValueError(
                    f"the answer {answer} may be a label or an index, which is counted from 0; if it is a label, quote "
                    f'it in the source ("{answer}")'
                )
            if 0 <= answer < len(self.labels):
                return self.labels[answer]
            raise ValueError(f"the answer {answer} is no index of {len(self.labels)} options, which are counted from 0")
        if isinstance(answer, str):
            if answer.strip() in self.labels:
                return answer.strip()
            named = [label for label, text in zip(self.labels, self.texts, strict=True) if text == answer]
            if len(named) == 1:
                return named[0]
            if named:
                raise ValueError(f"the answer {answer!r} is the text of several options: {', '.join(named)}")
        raise ValueError(
            f"the answer {answer!r} is neither an index, nor one of the labels {', '.join(self.labels)}, nor the text "
            "of an option"
        )


def options_of(row: Row, choices: str | tuple[str, ...]) -> Options:
    """The options that ``row`` holds in the field ``choices``, or one in each of several fields.

    Raises:
        ValueError: they are not at least two texts, or their labels do not fit them.
    """
    labels: Any = None
    if isinstance(choices, str):
        texts: Any = row[choices]
        where = f"field {choices!r}"
        if isinstance(texts, dict):
            if not {"text", "label"} <= texts.keys():
                raise ValueError(f"{where} has {', '.join(map(repr, texts))} and should have 'text' and 'label'")
            texts, labels = texts["text"], texts["label"]
    else:
        texts = [row[field] for field in choices]
        where = f"fields {', '.join(map(repr, choices))}"
    _check_texts(texts, f"the options in {where}")
    if len(texts) < 2:
        raise ValueError(f"the options in {where} are fewer than two")
    if labels is None:
        if len(texts) > len(string.ascii_uppercase):
            raise ValueError(f"the options in {where} are more than there are letters to label them")
        labels = list(string.ascii_uppercase[: len(texts)])
    _check_texts(labels, f"the labels in {where}")
    if len(labels) != len(texts) or len(set(labels)) < len(labels):
        raise ValueError(f"the labels in {where} do not give each of {len(texts)} options its own: {labels}")
    return Options(list(texts), list(labels))


def _check_texts(values: Any, what: str) -> None:
    if not isinstance(values, list) or not all(isinstance(value, str) and value.strip() for value in values):
        raise ValueError(f"{what} are not a list of texts that say something: {values!r}")
