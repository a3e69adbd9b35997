"""What every reading of a completion begins with: cleaning, and the places where an answer is marked.

Pure functions of text; no gold answer is in sight, so an extraction cannot be tuned to the verdict. Each takes time
linear in the completion's length, whatever is in it. What kind of answer stands in a marked place belongs to
``numbers``, ``short_answers``, ``choices``, ``mathematics`` and ``code_extraction``.
"""

import re
from dataclasses import dataclass

MAX_COMPLETION = 1 << 20
"""Longer completions, in characters, are not read. No model's answer to a task of the known benchmarks comes near."""


@dataclass(frozen=True)
class Extraction:
    """One reading of a completion.

    value: canonical decimal string, short answer, label, LaTeX or program; None when there is nothing to grade.
    rule: name of the rule that fired, for audits.
    ambiguous: the same rule could have read another value; the verdict deserves a second look.
    """

    value: str | None
    rule: str
    ambiguous: bool = False


# --- cleaning ---------------------------------------------------------------------------------------------------------

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_END_OF_TURN = re.compile(r"<\|(?:im_end|eot_id|endoftext|end|end_of_text)\|>|</s>|<end_of_turn>|<｜end▁of▁sentence｜>")
_SPECIAL_TOKEN = re.compile(
    r"<\|im_start\|>(?:assistant\n)?|<\|start_header_id\|>assistant<\|end_header_id\|>\n*"
    r"|<[|｜][a-zA-Z0-9_▁ ]{1,40}[|｜]>|</?s>|<(?:start|end)_of_turn>|<bos>|<eos>"
)
_THINK_OPEN = re.compile(r"<think(?:ing)?>", re.IGNORECASE)
_THINK_CLOSE = re.compile(r"</think(?:ing)?>", re.IGNORECASE)


def clean_completion(text: str) -> str | None:
    """The part of a completion that was meant as its answer, indentation intact.

    Line ends become LF; ANSI escapes and special tokens go, and so do what precedes the last `</think>` and what
    follows the first end-of-turn token. None when a `<think>` is never closed: the model was cut off before the answer.
    """
    text = _ANSI.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    text = _THINK_CLOSE.split(text)[-1]
    if _THINK_OPEN.search(text):
        return None
    # A model that leaks its end-of-turn token goes on as the user: only the first non-blank turn is the answer.
    for turn in _END_OF_TURN.split(text):
        if (answer := _SPECIAL_TOKEN.sub("", turn)).strip():
            return answer
    return ""


_NEXT_QUESTION = re.compile(r"^[ \t>*#_]*(?:question|q)[ \t]*\d*[*_]*:", re.IGNORECASE | re.MULTILINE)


def readable_text(text: str) -> str | Extraction:
    """The cleaned completion, or the reason why there is none: `too_long`, `unclosed_think` or `empty`."""
    if len(text) > MAX_COMPLETION:
        return Extraction(None, "too_long")
    cleaned = clean_completion(text)
    if cleaned is None:
        return Extraction(None, "unclosed_think")
    return cleaned if cleaned.strip() else Extraction(None, "empty")


def answer_text(text: str) -> str | Extraction:
    """The readable text up to a follow-up question of the model's own, or the reason why there is none."""
    cleaned = readable_text(text)
    if isinstance(cleaned, Extraction):
        return cleaned
    for match in _NEXT_QUESTION.finditer(cleaned):
        if cleaned[: match.start()].strip():  # a completion may open by restating the question
            return cleaned[: match.start()]
    return cleaned


# --- marked places ----------------------------------------------------------------------------------------------------

ANSWER_MARKER = re.compile(r"\banswer[*_]*(?:[ \t]+(?:is|was|are)\b[ \t]*:?|[ \t]*[:=])[ \t]*", re.IGNORECASE)


def marked_spans(text: str, marker: re.Pattern[str] = ANSWER_MARKER) -> list[str]:
    """What follows each "answer is" / "answer:", to the next one or the end of its line.

    The next line that is not blank when nothing follows on its own.
    """
    return [span for _, span in placed_marked_spans(text, marker)]


def placed_marked_spans(text: str, marker: re.Pattern[str]) -> list[tuple[int, str]]:
    """The spans of ``marked_spans``, each with the place of its marker."""
    matches = list(marker.finditer(text))
    spans = []
    for number, match in enumerate(matches, 1):
        following = matches[number].start() if number < len(matches) else len(text)
        place = match.end()
        line = _line_at(text, place, following)
        if place + len(line) < following or following == len(text):  # its line ends before the next marker
            # The lines that are skipped hold no marker, so that none is skipped twice.
            while not line.strip(" \t*_:") and (place := place + len(line) + 1) <= len(text):
                line = _line_at(text, place, len(text))
        spans.append((match.start(), line))
    return spans


def _line_at(text: str, place: int, limit: int) -> str:
    end = text.find("\n", place, limit)
    return text[place : limit if end < 0 else end]


_ANSWER_TAG = re.compile(r"<(/?)answer>")


def tagged_spans(text: str) -> list[str]:
    """The contents of each `<answer>...</answer>`, from the first opening one as reasoning-gym reads them."""
    found = []
    start: int | None = None
    for match in _ANSWER_TAG.finditer(text):
        if not match[1]:
            start = match.end() if start is None else start
        elif start is not None:
            found.append(text[start : match.start()].strip())
            start = None
    return found


# A backslash takes the character after it along, so that \{ opens nothing; some clients double the one of \boxed.
_BRACE = re.compile(
    r"(?P<boxed>\\{1,2}(?:boxed|fbox)[ \t]*\{)"
    r"|(?P<bare>\\{1,2}boxed(?:[ \t]+|(?=[0-9]))(?P<contents>[0-9A-Za-z]+))|\\.|[{}]",
    re.DOTALL,
)


def boxed_spans(text: str) -> list[str]:
    """The contents of each `\\boxed{}` that is closed and stands in no other, of each `\\boxed 7` and `\\boxed7`."""
    return [span for _, span in placed_boxed_spans(text)]


def placed_boxed_spans(text: str) -> list[tuple[int, str]]:
    """The spans of ``boxed_spans``, each with its place."""
    open_braces: list[tuple[int, int] | None] = []  # where a box and its contents begin; None is any other brace
    closed: list[tuple[int, int, int]] = []
    for match in _BRACE.finditer(text):
        if match["boxed"]:
            open_braces.append((match.start(), match.end()))
        elif match["bare"]:
            closed.append((match.start(), match.start("contents"), match.end()))
        elif match[0] == "{":
            open_braces.append(None)
        elif match[0] == "}" and open_braces and (box := open_braces.pop()):
            while closed and closed[-1][0] > box[0]:
                closed.pop()  # stands in this one
            closed.append((*box, match.start()))
    return [(start, text[inner:end]) for start, inner, end in closed]
