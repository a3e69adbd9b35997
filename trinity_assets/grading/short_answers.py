"""The word or short phrase that a completion answers, and when two of them are the same."""

import re
import unicodedata

from trinity_assets.grading.extraction import Extraction, answer_text, boxed_spans, marked_spans, tagged_spans

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
_LEAD = re.compile(
    r"(?:(?:sure|certainly|absolutely|of course|okay|ok|well)[!,.:]+\s+)?"
    r"(?:(?:it|that|this)(?:['\u2019]s|\s+is|\s+was)\s+)?",
    re.IGNORECASE,
)
_RETRACTION = re.compile(
    r"[-\u2013\u2014,;.(?!][ \t]*"
    r"(?:no,?[ \t]+wait|wait,?[ \t]+no|wait|scratch that|correction|sorry|i mean|or rather|no,)"
    r"[-,:;.!\u2013\u2014 \t]+(?=\w)",
    re.IGNORECASE,
)
_ALTERNATIVE = re.compile(r"[ \t*_]*[,;(][ \t]*(?:or|maybe|possibly|perhaps)[ \t]", re.IGNORECASE)
_SUBJECT = re.compile(r"(?:an?|the|it|this|that|there|he|she|they|we|i|what|which|who|one|so)\b", re.IGNORECASE)
_LATEX_TEXT = re.compile(r"\\(?:text(?:bf|it|rm)?|mathrm|mathbf) *\{([^{}]*)\}|\$")


def extract_short_answer(text: str) -> Extraction:
    """The word or short phrase that a completion answers.

    The first rule that applies: `boxed` (the last `\\boxed{}`); `answer_tag` (the last `<answer>`); `answer_marker`
    (what follows the last "answer is" / "answer:" on its line); `yes_no` (the completion opens with yes or no and a
    pause); `whole` (a single line of at most four words); `copula` (first sentence of the last line: what follows its
    last "is", "are", "called", "=" or ":", or what stands before "is the"); `last_line`. All but `whole` end with their
    clause or quotation and lose leading words that only hedge or place ("typically", "located in"). A marked answer
    that is taken back counts as what replaces it; one that offers several is read as all of them.
    """
    answer = answer_text(text)
    if isinstance(answer, Extraction):
        return answer
    for rule, spans in (
        ("boxed", [_LATEX_TEXT.sub(r"\1", span) for span in boxed_spans(answer)]),
        ("answer_tag", tagged_spans(answer)),
        ("answer_marker", marked_spans(answer)),
    ):
        marked = [value for span in spans if (value := _settled(span))]
        if marked:
            return Extraction(marked[-1], rule, len({normalize_short_answer(value) for value in marked}) > 1)
    if match := _YES_NO.match(answer):
        return Extraction(match[1], "yes_no")
    lines = [line.strip() for line in answer.split("\n") if line.strip()]
    last = _LEAD.sub("", lines[-1], count=1) or lines[-1]
    if len(lines) == 1 and len(last.split()) <= _SHORT_WORDS and not _COPULA.search(last):
        return Extraction(last, "whole")
    sentence = re.split(r"(?<=[.!?])\s", last, maxsplit=1)[0]
    if subject := _described(sentence):
        return Extraction(subject, "copula", ambiguous=True)
    tails = [value for span in marked_spans(sentence, _COPULA) if (value := clause(span))]
    if tails:
        return Extraction(tails[-1], "copula", len(tails) > 1)
    return Extraction(clause(last) or last, "last_line", ambiguous=True)


def _settled(span: str) -> str:
    """The answer of a marked span: its first clause, unless it is taken back or others are offered beside it."""
    span = span[max((match.end() for match in _RETRACTION.finditer(span)), default=0) :]
    first = clause(span)
    items = span.strip(" \t*_.").split(",")
    if len(items) > 2 and all(0 < len(re.sub(r"^\s*and\b", "", item).split()) <= 2 for item in items):
        return span.strip(" \t*_.")
    offers = first and _ALTERNATIVE.match(span, span.find(first) + len(first))
    return span.strip(" \t*_.") if offers else first


def _described(sentence: str) -> str:
    """The name in "Paris is the capital of France"; empty where the sentence is not of that form."""
    match = re.search(r"\s(?:is|was)\s+the\s", sentence)
    if match is None or len(_COPULA.findall(sentence)) > 1:
        return ""
    name = sentence[: match.start()].strip(f" \t*_{_QUOTES}")
    return name if len(name.split()) <= _SHORT_WORDS and not _SUBJECT.match(name) else ""


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
