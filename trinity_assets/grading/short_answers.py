"""The word or short phrase that a completion answers, and when two of them are the same."""

import re
import unicodedata

from trinity_assets.grading.extraction import Extraction, answer_text, marked_spans

_SHORT_WORDS = 4  # "Washington D.C." and "a baby dog" are whole answers; a clause with a verb rarely fits
_YES_NO = re.compile(r"[\s*_\"']*(yes|no)\b(?=[*_\"']*(?:[,.!;:\n]|$|\s+[-\u2013\u2014]))", re.IGNORECASE)
_COPULA = re.compile(r"\s(?:is|are|was|were|becomes|called)\s+|=\s*|:\s+", re.IGNORECASE)
_CLAUSE_END = re.compile(
    r"[.!?](?=\s|$|[\"'\u201d\u2019)*_])|[,;(\n\"\u201c\u201d]|\s(?:because|since|which|that|as)\b|\s[-\u2013\u2014]\s",
    re.IGNORECASE,
)
_HEDGE = re.compile(
    r"^(?:(?:typically|usually|actually|indeed|simply|located|situated|called|in|on)\s+)+", re.IGNORECASE
)
_QUOTES = "\"'\u201c\u201d\u2018\u2019`"


def extract_short_answer(text: str) -> Extraction:
    """The word or short phrase that a completion answers.

    The first rule that applies: `answer_marker` (what follows the last "answer is" / "answer:" on its line); `yes_no`
    (the completion opens with yes or no and a pause); `whole` (a single line of at most four words); `copula` (first
    sentence of the last line, what follows its last "is", "are", "called", "=" or ":"); `last_line`. All but `whole`
    end with their clause or quotation and lose leading words that only hedge or place ("typically", "located in").
    """
    answer = answer_text(text)
    if isinstance(answer, Extraction):
        return answer
    marked = [value for span in marked_spans(answer) if (value := clause(span))]
    if marked:
        return Extraction(marked[-1], "answer_marker", len({normalize_short_answer(value) for value in marked}) > 1)
    if match := _YES_NO.match(answer):
        return Extraction(match[1], "yes_no")
    lines = [line.strip() for line in answer.split("\n") if line.strip()]
    if len(lines) == 1 and len(lines[0].split()) <= _SHORT_WORDS and not _COPULA.search(lines[0]):
        return Extraction(lines[0], "whole")
    sentence = re.split(r"(?<=[.!?])\s", lines[-1], maxsplit=1)[0]
    tails = [value for span in marked_spans(sentence, _COPULA) if (value := clause(span))]
    if tails:
        return Extraction(tails[-1], "copula", len(tails) > 1)
    return Extraction(clause(lines[-1]) or lines[-1], "last_line", ambiguous=True)


def clause(span: str) -> str:
    """The first clause of a span, without quotes, emphasis and leading words that only hedge or place."""
    first = _CLAUSE_END.split(span.strip(f" \t*_:{_QUOTES}"), maxsplit=1)[0]
    return _HEDGE.sub("", first.strip()).strip(f" \t*_{_QUOTES}")


def normalize_short_answer(text: str) -> str:
    """Fold what does not change a short answer: case, Unicode form, outer punctuation, Markdown, a leading article."""
    folded = " ".join(compatible(text).casefold().split())
    folded = re.sub(r"^(?:an?|the)\s+", "", _strip_punctuation(folded))
    return _strip_punctuation(folded)


_COMBINING_RUN = 30
"""Unicode's stream-safe limit (UAX 15): no writing system puts more combining marks on one letter."""


def compatible(text: str) -> str:
    """The text in NFKC, or as it is where more marks than any writing system needs would make that quadratic."""
    if text.isascii():
        return text
    run = 0
    for char in text:
        run = run + 1 if unicodedata.combining(char) else 0
        if run > _COMBINING_RUN:
            return text
    return unicodedata.normalize("NFKC", text)


def _strip_punctuation(text: str) -> str:
    def is_outer(char: str) -> bool:
        return char.isspace() or char in "`~" or unicodedata.category(char).startswith("P")

    start, end = 0, len(text)
    while start < end and is_outer(text[start]):
        start += 1
    while end > start and is_outer(text[end - 1]):
        end -= 1
    return text[start:end]
