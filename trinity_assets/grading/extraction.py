"""What a completion answers: the number or the short answer in a model's text (the program: ``code_extraction``).

Pure functions of text; no gold answer is in sight, so an extraction cannot be tuned to the verdict. What to do with the
extracted value (comparing, running) belongs to the graders.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True)
class Extraction:
    """One reading of a completion.

    value: canonical decimal string, short answer or program; None when there is nothing to grade.
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
    turns = [turn for turn in _END_OF_TURN.split(text) if _SPECIAL_TOKEN.sub("", turn).strip()]
    return _SPECIAL_TOKEN.sub("", turns[0]) if turns else ""


_NEXT_QUESTION = re.compile(r"^[ \t>*#_]*(?:question|q)[ \t]*\d*[*_]*:", re.IGNORECASE | re.MULTILINE)


def _answer_text(text: str) -> str | Extraction:
    """The cleaned completion up to a follow-up question of the model's own, or the reason why there is none."""
    cleaned = clean_completion(text)
    if cleaned is None:
        return Extraction(None, "unclosed_think")
    for match in _NEXT_QUESTION.finditer(cleaned):
        if cleaned[: match.start()].strip():  # a completion may open by restating the question
            cleaned = cleaned[: match.start()]
            break
    return cleaned if cleaned.strip() else Extraction(None, "empty")


_ANSWER_MARKER = re.compile(r"\banswer[*_]*(?:[ \t]+(?:is|was|are)\b[ \t]*:?|[ \t]*[:=])[ \t]*", re.IGNORECASE)


def _marked_spans(text: str) -> list[str]:
    """What follows each "answer is" / "answer:", to the end of its line, or the next line when nothing follows."""
    spans = []
    for match in _ANSWER_MARKER.finditer(text):
        rest = text[match.end() :].split("\n")
        spans.append(next((line for line in rest if line.strip(" \t*_:")), ""))
    return spans


# --- numbers ----------------------------------------------------------------------------------------------------------

_SEPARATORS = ",\u00a0\u202f\u2009"
_ASCII_DIGITS = str.maketrans("０１２３４５６７８９，．－\u2212\ufe63", "0123456789,.---")
_CURRENCY = re.compile(r"\\?[$£€]")
_EMPHASIS = re.compile(r"(?<!\d)\*\*|\*\*(?!\d)")  # 2**3 is a power, **18** is not
_SCALES = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
# A minus is a sign only when it touches its number and nothing that could be an operand, a word or a bracket precedes
# it: "- 5" is a bullet, "16 -3" and "10-3" subtract, "covid-19" joins.
_NUMBER = re.compile(
    rf"(?P<sign>(?<![^\W_])(?<![)\]}}])(?<![0-9)\]}}][ \t])-)?"
    rf"(?:(?<![^\W_])(?P<whole>\d{{1,3}}(?:(?P<sep>[{_SEPARATORS}])\d{{3}}(?:(?P=sep)\d{{3}})*)(?![\d])|\d+)"
    rf"(?P<part>\.\d+)?|(?<![\w.])(?P<bare>\.\d+))"
    rf"(?P<exp>[eE][+-]?\d{{1,3}}(?!\w))?"
    rf"(?:[ \t](?P<scale>{'|'.join(_SCALES)})\b)?",
    re.IGNORECASE,
)
_BOXED = re.compile(r"\\boxed[ \t]*\{")


def extract_number(text: str) -> Extraction:
    """The number that a completion answers, as an exact canonical decimal string ("1450000", "-3", "18.5").

    The first of these that holds a number: the last `####` line, the last `\\boxed{}`, the last "answer is" / "answer:"
    line, the last line with a number. Within it, what is right of its last `=` is read: the first number of a marked
    span, the last number of an unmarked line.
    """
    answer = _answer_text(text)
    if isinstance(answer, Extraction):
        return answer
    plain = _EMPHASIS.sub("", _CURRENCY.sub("", answer.translate(_ASCII_DIGITS)))
    marked = (
        ("hash_line", _hash_spans(plain)),
        ("boxed", list(_boxed_spans(plain))),
        ("answer_marker", _marked_spans(plain)),
    )
    for rule, spans in marked:
        readings = [numbers for span in spans if (numbers := _result_numbers(span))]
        if readings:
            firsts = {numbers[0] for numbers in readings}
            return Extraction(readings[-1][0], rule, len(firsts) > 1 or len(set(readings[-1])) > 1)
    for line in reversed(plain.split("\n")):
        if numbers := _result_numbers(line):
            return Extraction(numbers[-1], "last_number", len(set(numbers)) > 1)
    return Extraction(None, "no_number")


def _hash_spans(text: str) -> list[str]:
    """What follows each `####`, except Markdown headings: words before the number, unless they announce a result."""
    spans = []
    for line in re.findall(r"####([^\n]*)", text):
        lead = _NUMBER.split(line, maxsplit=1)[0]
        if "=" in line or not re.search(r"[^\W\d_]", lead) or re.search(r"\b(?:answer|result|total)\b", lead, re.I):
            spans.append(line)
    return spans


def _boxed_spans(text: str) -> Iterator[str]:
    for match in _BOXED.finditer(text):
        depth = 1
        for end in range(match.end(), len(text)):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            if depth == 0:
                yield text[match.end() : end]
                break


def _result_numbers(span: str) -> list[str]:
    """The canonical numbers right of the span's last `=`, or in all of it when there are none."""
    right = [_canonical(match) for match in _NUMBER.finditer(span.rpartition("=")[2])]
    return right or [_canonical(match) for match in _NUMBER.finditer(span)]


def _canonical(match: re.Match[str]) -> str:
    whole = re.sub(rf"[{_SEPARATORS}]", "", match["whole"] or "0")
    exponent = int(match["exp"][1:]) if match["exp"] else 0
    exponent += _SCALES[match["scale"].lower()] if match["scale"] else 0
    # Building from text is exact at any length; Decimal arithmetic would round to the context's precision.
    number = Decimal(f"{match['sign'] or ''}{whole}{match['part'] or match['bare'] or ''}e{exponent}")
    plain = format(number, "f")
    if "." in plain:
        plain = plain.rstrip("0").rstrip(".")
    return "0" if plain.strip("-0") == "" else plain


# --- short answers ----------------------------------------------------------------------------------------------------

_SHORT_WORDS = 4  # "Washington D.C." and "a baby dog" are whole answers; a clause with a verb rarely fits
_YES_NO = re.compile(r"[\s*_\"']*(yes|no)\b(?=[*_\"']*(?:[,.!;:\n]|$|\s+[-–—]))", re.IGNORECASE)
_COPULA = re.compile(r"\s(?:is|are|was|were|becomes|called)\s+|\s*=\s*|:\s+", re.IGNORECASE)
_CLAUSE_END = re.compile(
    r"[.!?](?=\s|$|[\"'”’)*_])|[,;(\n\"“”]|\s(?:because|since|which|that|as)\b|\s[-–—]\s", re.IGNORECASE
)
_HEDGE = re.compile(
    r"^(?:(?:typically|usually|actually|indeed|simply|located|situated|called|in|on)\s+)+", re.IGNORECASE
)


def extract_short_answer(text: str) -> Extraction:
    """The word or short phrase that a completion answers.

    The first rule that applies: `answer_marker` (what follows the last "answer is" / "answer:" on its line); `yes_no`
    (the completion opens with yes or no and a pause); `whole` (a single line of at most four words); `copula` (first
    sentence of the last line, what follows its last "is", "are", "called", "=" or ":"); `last_line`. All but `whole`
    end with their clause or quotation and lose leading words that only hedge or place ("typically", "located in").
    """
    answer = _answer_text(text)
    if isinstance(answer, Extraction):
        return answer
    marked = [value for span in _marked_spans(answer) if (value := _clause(span))]
    if marked:
        return Extraction(marked[-1], "answer_marker", len({normalize_short_answer(value) for value in marked}) > 1)
    if match := _YES_NO.match(answer):
        return Extraction(match[1], "yes_no")
    lines = [line.strip() for line in answer.split("\n") if line.strip()]
    if len(lines) == 1 and len(lines[0].split()) <= _SHORT_WORDS and not _COPULA.search(lines[0]):
        return Extraction(lines[0], "whole")
    sentence = re.split(r"(?<=[.!?])\s", lines[-1], maxsplit=1)[0]
    tails = [value for match in _COPULA.finditer(sentence) if (value := _clause(sentence[match.end() :]))]
    if tails:
        return Extraction(tails[-1], "copula", len(tails) > 1)
    return Extraction(_clause(lines[-1]) or lines[-1], "last_line", ambiguous=True)


def _clause(span: str) -> str:
    clause = _CLAUSE_END.split(span.strip(" \t*_\"'“”‘’`:"), maxsplit=1)[0]
    return _HEDGE.sub("", clause.strip()).strip(" \t*_\"'“”‘’`")


def normalize_short_answer(text: str) -> str:
    """Fold what does not change a short answer: case, Unicode form, outer punctuation, Markdown, a leading article."""
    folded = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    folded = re.sub(r"^(?:an?|the)\s+", "", _strip_punctuation(folded))
    return _strip_punctuation(folded)


def _strip_punctuation(text: str) -> str:
    def is_outer(char: str) -> bool:
        return char.isspace() or char in "`~" or unicodedata.category(char).startswith("P")

    start, end = 0, len(text)
    while start < end and is_outer(text[start]):
        start += 1
    while end > start and is_outer(text[end - 1]):
        end -= 1
    return text[start:end]
