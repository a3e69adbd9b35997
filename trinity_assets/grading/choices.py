"""The option that a completion to a multiple-choice task settles on.

A label counts where the text gives it as the answer, not wherever it stands: "A" is also an article, "1" also a number,
and most explanations name the wrong options too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from trinity_assets.errors import GraderError
from trinity_assets.grading.extraction import Extraction, answer_text, placed_boxed_spans, placed_marked_spans
from trinity_assets.grading.short_answers import clause, compatible
from trinity_assets.grading.specs import ChoiceGrader
from trinity_assets.grading.verdicts import Payload, Verdict, compared, nothing_found


@dataclass(frozen=True)
class LabelledOptions:
    """The labels of a task's options, in order, and their texts; with patterns that are made from the labels."""

    labels: tuple[str, ...]
    texts: tuple[str, ...]

    @cached_property
    def folded(self) -> dict[str, str]:
        """Each label's text, folded."""
        return dict(zip(self.labels, map(_folded, self.texts), strict=True))

    def labelled(self, folded: str) -> str | None:
        """The label of the one option with this text; None if none or several have it."""
        found = [label for label, option in self.folded.items() if option == folded]
        return found[0] if len(found) == 1 and folded else None

    @cached_property
    def any_label(self) -> str:
        """A pattern for one label."""
        return "|".join(re.escape(label) for label in sorted(self.labels, key=len, reverse=True))

    @cached_property
    def head(self) -> re.Pattern[str]:
        """A label at the head of a text, after words and marks that only lead to it."""
        return re.compile(rf"{_LEAD}(?P<label>{self.any_label})(?!\w)", re.IGNORECASE)

    @cached_property
    def beside(self) -> re.Pattern[str]:
        """A label that is offered beside a first one: "or C", ", C", "? No, C"."""
        listed = rf"{_LEAD}(?P<listed>{self.any_label})(?!\w)(?![ \t]+[a-z])"
        offered = rf"{_LEAD}(?P<offered>{self.any_label})(?!\w)"
        return re.compile(rf"[*_)\]}}\"'.\s]*+(?:[,;|+/?][ \t]*{listed}|{_OFFERING}{offered})")

    def offers_another(self, label: str, rest: str) -> bool:
        """Whether what follows a label offers another one beside it."""
        after = _LABEL_END.sub("", rest, count=1)
        text = self.texts[self.labels.index(label)]
        rests = [rest, after[len(text) :]] if text and after.casefold().startswith(text.casefold()) else [rest]
        matches = [match for part in rests if (match := self.beside.match(part))]
        return any((match["listed"] or match["offered"]) != label for match in matches)

    @cached_property
    def called_right(self) -> re.Pattern[str]:
        """A label that a sentence calls right: "B is correct"."""
        return re.compile(
            rf"(?<![\w'\u2019-])(?P<label>{self.any_label})(?!\w)[*_)\].\"']*+[ \t]+(?:is|must be|would be)[ \t]+"
            r"(?:clearly[ \t]+)?(?:the[ \t]+)?(?:only[ \t]+|most[ \t]+)?(?:correct|right|best|true|answer)\b"
        )

    @cached_property
    def named(self) -> re.Pattern[str]:
        """A label anywhere in a line: in brackets, called an option, or bare between other words."""
        return re.compile(
            rf"[(\[](?P<bracketed>(?i:{self.any_label}))[)\]]"
            rf"|\b(?i:option|choice|answer|letter)[ \t]+[*_\"'(]*(?P<called>(?i:{self.any_label}))(?!\w)"
            rf"|(?<![\w'\u2019.-])(?P<bare>{self.any_label})(?![\w'\u2019-])"
            r"(?P<end>[*_\"']*(?:[.,;:)!?](?!\d)|$)|[ \t]+(?:and|or)\b)?"
        )

    @cached_property
    def concluded(self) -> re.Pattern[str]:
        """A label that a conclusion ends with: "so B.", "therefore **B**", "that leaves (B)"."""
        return re.compile(
            r"\b(?i:so|therefore|thus|hence|leaves|leaving)[,:]?[ \t]+(?i:(?:both|all|none)[,:][ \t]+)?"
            r"(?i:(?:it|this|that)(?:'s|[ \t]+is|[ \t]+must be)[ \t]+)?(?i:option[ \t]+|choice[ \t]+)?"
            rf"[*_(\"']*(?P<label>{self.any_label})(?!\w)[*_)\"']*(?=[.!;,]?\s*(?:\n|$)|[.!])"
        )

    @cached_property
    def emphasised(self) -> re.Pattern[str]:
        """A label that stands alone in bold."""
        return re.compile(rf"\*\*[ \t]*\(?(?P<label>{self.any_label})[).:]{{0,2}}[ \t]*\*\*(?!\w)")

    def canonical(self, found: str) -> str:
        """The label as the task has it, of one that was found in any case."""
        return next(label for label in self.labels if label.casefold() == found.casefold())


def grade_choice(_grader: ChoiceGrader, completion: str, payload: Payload) -> Verdict:
    """Grade against ``payload["answer"]``, one of ``payload["labels"]`` of ``payload["choices"]``.

    Raises:
        GraderError: the payload is not that.
    """
    options, gold = read_options(payload)
    found = extract_choice(completion, options)
    if found.value is None and found.ambiguous:
        return Verdict(0.0, found.rule, True, "the last line names several options and settles on none")
    if found.value is None:
        return nothing_found(found)
    return compared(found.value == gold, found, found.value)


_ADVICE = "name the fields of the options as 'choices' under the benchmark's fields, which fills in both"


def read_options(payload: Payload) -> tuple[LabelledOptions, str]:
    """The options of a gold payload, and the label of the right one.

    Raises:
        GraderError: it holds no options, or its answer is none of their labels.
    """
    texts, labels = payload.get("choices"), payload.get("labels")
    if not isinstance(texts, list) or len(texts) < 2:
        raise GraderError(f"the gold payload has no list of 'choices'; {_ADVICE}")
    if (
        not isinstance(labels, list)
        or len(labels) != len(texts)
        or len({str(label).strip().casefold() for label in labels}) != len(texts)
    ):
        raise GraderError(
            f"the gold payload has {len(texts)} 'choices' and the labels {labels!r}; each needs a label of its own, "
            f"in more than its case; {_ADVICE}"
        )
    options = LabelledOptions(tuple(str(label).strip() for label in labels), tuple(map(str, texts)))
    gold = str(payload.get("answer", "")).strip()
    if gold not in options.labels:
        raise GraderError(
            f"the gold answer {gold!r} is none of the labels {', '.join(options.labels)}; map the right option's label "
            "to 'answer' under the benchmark's fields"
        )
    return options, gold


# --- where an answer is given -----------------------------------------------------------------------------------------

_MARKER = re.compile(
    r"(?<![-\w])(?P<bad>(?:wrong|incorrect|false|bad|worst|other)[ \t]+)?"
    r"(?:answer|option|choice|solution)[*_]*"
    r"(?:[ \t]+(?:is|was|would be|must be|should be|has to be)\b[ \t]*:?|[ \t]*[:=])[ \t]*"
    r"|(?<![-\w])I(?:'d|'ll| would| will| must)?[ \t]+(?:choose|pick|select|go with)\b[ \t]*:?[ \t]*",
    re.IGNORECASE,
)
_HASH = re.compile(r"####([^\n]*)")


def extract_choice(text: str, options: LabelledOptions) -> Extraction:
    """The label that a completion answers.

    The first rule that applies: `hash_line`, `boxed`, `answer_marker` (the last "####", `\\boxed{}` or "answer is" that
    a label or the very text of one option follows); `declared` (the last "B is correct"); `lone_label` (a line that is
    a label, or the only one that begins with one: "B", "(b).", "**B)** Paris"); `concluded` ("so B.", "that leaves B");
    `emphasised` (a label alone in bold); `option_text` (the completion is the text of one option); `last_line` (the
    only label that the last line names and does not deny). `no_choice` when none does. A hedge ("B or C") is no answer.
    """
    answer = answer_text(text)
    if isinstance(answer, Extraction):
        return answer
    for rule_readings in (_marked, _declared, _alone, _heading, _concluded, _emphasised):
        if readings := rule_readings(answer, options):
            rule, answered = readings[-1]
            return Extraction(answered, rule, len({other for _, other in readings}) > 1)
    if label := options.labelled(_folded(answer)) or options.labelled(_folded(_IT_IS.sub("", answer, count=1))):
        return Extraction(label, "option_text")
    if any(_NO_OPTION.match(span) for _, span in placed_marked_spans(answer, _MARKER)):
        return Extraction(None, "no_choice", ambiguous=True)
    named = _named_in_last_line(answer, options)
    if len(named) == 1:
        return Extraction(named.pop(), "last_line", ambiguous=True)
    return Extraction(None, "no_choice", ambiguous=bool(named))


def _marked(text: str, options: LabelledOptions) -> list[tuple[str, str]]:
    """Rule and label of each marked place that holds an answer, in the order of the text."""
    places = [(match.start(), "hash_line", match[1]) for match in _HASH.finditer(text)]
    places += [(place, "boxed", span) for place, span in placed_boxed_spans(text)]
    places += [
        (place, "answer_marker", span)
        for place, span in placed_marked_spans(text, _MARKER)
        if (marker := _MARKER.match(text, place)) and not marker["bad"]
    ]
    return [(rule, label) for _, rule, span in sorted(places) if (label := _label_in_span(span, options))]


_IT_IS = re.compile(r"\s*(?:it|that|this)(?:['\u2019]s|[ \t]+(?:is|must be|would be))[ \t]+", re.IGNORECASE)
_NO_OPTION = re.compile(r"[\s*_(\"']*(?:none|nothing|neither|unknown|(?:any|every)thing but|all but)\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)")


def _label_in_span(span: str, options: LabelledOptions) -> str | None:
    """The label that a marked span begins with or whose option's text it is."""
    head = _label_at_head(span, options)
    if head and head.certain:
        return None if head.hedged else head.label
    for text in (span, _SENTENCE_END.split(span, maxsplit=1)[0], clause(span)):
        if label := options.labelled(_folded(_without_latex(text))):
            return label
    return head.label if head and not head.hedged and not head.doubtful else None


# --- labels -----------------------------------------------------------------------------------------------------------

_LEAD = (
    r"(?:[\s*_\"'\u201c\u201d\u2018\u2019`(\[{$:>~#]|-(?=[ \t])|\\[a-zA-Z]+ ?(?=\{)|\\[(\[]"
    r"|(?:the|option|choice|answer|letter|label|most likely|likely|definitely|clearly|simply|indeed|probably)\b)*+"
)
_OFFERING = (
    r"(?:[,;(?.!/|+\u2013\u2014-]|[ \t])*+"
    r"(?i:and|or|&|but[ \t]+also|maybe|perhaps|possibly|alternatively|equally|except|unless|no,|wait,|actually)"
    r"(?:[,;:(]|[ \t]|\b(?i:or|maybe|perhaps|possibly|even|also|equally|alternatively|either|when|if|for|rather|it"
    r"|is|could|be)\b)*+"
)
"""What offers a second label after the marks that end a first one."""
_LABEL_END = re.compile(r"^[*_).:\]}\s\u2013\u2014-]*+")
_CERTAIN_END = re.compile(
    r"[*_\"'\u201d\u2019`]*+"
    r"(?:$|\n|[.:](?=\s|[*_\"')\]}$\\]|$)|[,;!?](?=\D|$)|[)\]}$>]|\\[)\]]"
    r"|[ \t]+[-\u2013\u2014(\u2192=>]|[\u2013\u2014])"
    r"|[*_\"'\u201d\u2019`]++(?=\s)"
    r"|[ \t]+(?:because|since|as|for|due|which|that|is|and|or|based|given|with|by)\b|[ \t]*[/&]"
)
_LONGER_TOKEN = re.compile(r"['\u2019]\w|[.,]\d|[/*^+]\d|-\w|[ \t]*[%\u00b0]")
_DENIED = re.compile(
    r"[*_)\].\"'\s]*+(?:"
    r"(?:is|are|was|seems|looks)[ \t]+(?:\w+ly[ \t]+)?(?:wrong|incorrect|false|not|never|untrue|eliminated|ruled)\b"
    r"|(?:is|was)n['\u2019]?t\b|can(?:not|['\u2019]t)\b"
    r"|can[ \t]+be[ \t]+(?:eliminated|excluded|ruled|dismissed|discarded)\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Head:
    """A label at the head of a text.

    certain: what follows it ends a label. doubtful: it could be an article, a pronoun or a number. hedged: another
    label is offered beside it.
    """

    label: str
    rest: str
    certain: bool
    doubtful: bool
    hedged: bool


def _label_at_head(text: str, options: LabelledOptions) -> _Head | None:
    match = options.head.match(text)
    if match is None:
        return None
    label = options.canonical(match["label"])
    rest = text[match.end() :].rstrip()
    if _DENIED.match(rest) or _LONGER_TOKEN.match(rest):
        return None
    certain = bool(_CERTAIN_END.match(rest))
    if not certain and label.isdigit() and _folded(rest) == options.folded[label]:
        certain = True
    doubtful = label.isdigit() or match["label"] == "I" or match["label"] == "A" or match["label"].islower()
    return _Head(label, rest, certain, doubtful, hedged=options.offers_another(label, rest))


_UNASSERTED = re.compile(
    r"\b(?:not|nor|neither|if|whether|than)[\s*_(\"']*(?:option|choice|answer)?[\s*_(\"']*$", re.IGNORECASE
)


def _declared(text: str, options: LabelledOptions) -> list[tuple[str, str]]:
    """Each label that a sentence calls right: "B is correct", "option (B) is the best choice".

    Where that is several, a conclusion below counts: "A is correct. B is correct. So both: D".
    """
    matches = [
        match
        for match in options.called_right.finditer(text)
        if not _UNASSERTED.search(text[max(0, match.start() - 20) : match.start()])
    ]
    if len({match["label"] for match in matches}) > 1 and (
        concluded := options.concluded.search(text, matches[-1].end())
    ):
        return [("concluded", concluded["label"])]
    return [("declared", match["label"]) for match in matches]


_MAX_INDENT = 40
"""White space before a label in a line; what stands further right is a drawing or a table."""
_SET_OFF = re.compile(r"[*_\"'`]*[).:\]}]|[*_\"'`]*[ \t]+[-\u2013\u2014]")


def _headed_lines(text: str, options: LabelledOptions) -> Iterator[tuple[int, _Head, str]]:
    """Each line that begins with a label: its number among the lines that are not blank, the head, what follows it."""
    for number, line in enumerate(line for line in text.split("\n") if line.strip()):
        head = _label_at_head(line, options) if len(line) - len(line.lstrip()) < _MAX_INDENT else None
        if head is not None:
            yield number, head, _folded(_without_latex(head.rest))


def _alone(text: str, options: LabelledOptions) -> list[tuple[str, str]]:
    """The label of each line that is nothing else."""
    return [("lone_label", head.label) for _, head, rest in _headed_lines(text, options) if not rest]


def _heading(text: str, options: LabelledOptions) -> list[tuple[str, str]]:
    """The label of the only line that begins with one, where that says more than the first item of a list does.

    It does with the very text of the option, or in the first line, unless it could be another word or a number.
    """
    headings = []
    for number, head, rest in _headed_lines(text, options):
        exact = rest == options.folded[head.label]
        if head.hedged:
            return []
        if exact or _SET_OFF.match(head.rest):
            headings.append((head.label, exact or (number == 0 and not head.doubtful)))
    if len(headings) != 1:
        return []
    ((label, answers),) = headings
    return [("lone_label", label)] if answers else []


def _concluded(text: str, options: LabelledOptions) -> list[tuple[str, str]]:
    """Each label that a conclusion ends with."""
    return [("concluded", match["label"]) for match in options.concluded.finditer(text)]


_NEAR = 80
"""Characters within which a second label is offered beside one in bold."""


def _emphasised(text: str, options: LabelledOptions) -> list[tuple[str, str]]:
    """Each label alone in bold, unless what follows denies it or goes on as an option's text in a list."""
    matches = list(options.emphasised.finditer(text))
    if any(options.offers_another(match["label"], text[match.end() : match.end() + _NEAR]) for match in matches):
        return []
    return [
        ("emphasised", match["label"])
        for match in matches
        if not _DENIED.match(text, match.end())
        and not _DENYING.search(text[max(0, match.start() - 40) : match.start()])
    ]


def _named_in_last_line(text: str, options: LabelledOptions) -> set[str]:
    """The labels that the last line names, without those that it denies."""
    line = text.rstrip().rpartition("\n")[2]
    head = _label_at_head(line, options)
    if head and _folded(head.rest) == options.folded[head.label]:
        return set()  # the last of a list of all options
    named = set()
    for match in options.named.finditer(line):
        found = match["bracketed"] or match["called"] or match["bare"]
        if match["bare"] and (found.isdigit() or (found in ("A", "I") and match["end"] is None)):
            continue
        before = line[max(0, match.start() - 40) : match.start()]
        if _DENIED.match(line, match.end()) or _DENYING.search(before):
            continue
        named.add(options.canonical(found))
    return named


_DENYING = re.compile(
    r"(?:\b(?:not|cannot|nor|neither|than|instead of|unlike|eliminat\w+|rul\w+ out|exclud\w+|reject\w*|except"
    r"|dismiss\w*|(?:any|every)thing but|all but|avoid\w*|never"
    r"|(?:wrong|incorrect|false)[ \t]+(?:answer|option|choice)[ \t]+is)|n['\u2019]t)"
    r"[\s*_(\"']*(?:be|choose|pick|select|go with|say)?[ \t]*(?:the)?[ \t]*(?:option|choice|answer)?s?[\s*_(\"']*$",
    re.IGNORECASE,
)


# --- texts ------------------------------------------------------------------------------------------------------------


_ARTICLE = re.compile(r"^(?:an?|the) (?=.)")
_LATEX = re.compile(r"\\(?:text|textbf|mathrm|mathbf|textrm|mathsf)(?![a-z])|[{}]|(?<!\\)\$(?!\d)|\\[()\[\]]")


def _folded(text: str) -> str:
    """An option's text without case, spacing, quotes, emphasis, a closing point and a leading article; signs stay."""
    folded = (
        " ".join(compatible(text).casefold().split()).strip(" *_\"'\u201c\u201d\u2018\u2019`").rstrip(" .,;:!*_\"'`")
    )
    folded = folded.lstrip(" ).:]*_")
    return _ARTICLE.sub("", folded)


def _without_latex(text: str) -> str:
    return _LATEX.sub("", text)
