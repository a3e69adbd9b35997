"""The mathematical answer of a completion, and when it equals a gold answer written in LaTeX.

Strings and exact numbers are compared here; only what is left goes to math-verify, which parses both sides with SymPy.
Its timeouts are signals of the main thread and are not used: who grades runs this in a process with limits.
"""

from __future__ import annotations

import logging
import re
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from importlib.metadata import version
from math import isclose
from types import ModuleType
from typing import Any

from trinity_assets.errors import GraderError
from trinity_assets.grading.costly_latex import MAX_DIGITS, refusal
from trinity_assets.grading.extraction import Extraction, answer_text, boxed_spans, marked_spans
from trinity_assets.grading.numbers import extract_number
from trinity_assets.grading.specs import MathGrader
from trinity_assets.grading.verdicts import Payload, Verdict, brief, compared, nothing_found

# --- the answer in a completion ---------------------------------------------------------------------------------------

_DELIMITER = re.compile(r"\\\\|\\\$|\$\$|\$|\\[()\[\]]|\n")
_CLOSING = {"$": "$", "$$": "$$", r"\(": r"\)", r"\[": r"\]"}
_JOINS: tuple[list[str], ...] = ([], ["and"], ["or"])
_DECORATION = " \t\n*_`\"':"
_WHOLE_CHARACTERS = 100
"""A line of up to this many is read as an answer in its own right. The longest gold of MATH-500 has 53."""
_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}")


def extract_math(text: str) -> Extraction:
    """The LaTeX that a completion answers.

    The first rule that applies: `boxed` (the last `\\boxed{}`); `answer_marker` (what follows the last "answer is" /
    "answer:": its formulas when it has any); `last_formula` (the last `$...$`, `\\(...\\)` or `\\[...\\]`); `whole` (a
    short line with no more than one word); `last_number`.
    """
    answer = answer_text(text)
    if isinstance(answer, Extraction):
        return answer
    if boxed := [span.strip() for span in boxed_spans(answer) if span.strip()]:
        return Extraction(boxed[-1], "boxed", len({plain_latex(span) for span in boxed}) > 1)
    if marked := [value for span in marked_spans(answer) if (value := _marked_value(span))]:
        return Extraction(marked[-1], "answer_marker", len({plain_latex(value) for value in marked}) > 1)
    if formulas := [formula for _, _, formula in _formulas(answer)]:
        return Extraction(formulas[-1], "last_formula", len({plain_latex(formula) for formula in formulas}) > 1)
    whole = _undecorated(answer)
    if 0 < len(whole) <= _WHOLE_CHARACTERS and "\n" not in whole and len(_WORD.findall(whole)) <= 1:
        return Extraction(whole, "whole")
    number = extract_number(answer)
    return Extraction(number.value, "last_number" if number.value else "no_answer", ambiguous=number.value is not None)


def _marked_value(span: str) -> str:
    """The first formula of a marked span with those that "and" or a comma joins to it, or its first sentence."""
    formulas = _formulas(span)
    if not formulas:
        return _undecorated(re.split(r"(?<!\\)[.!?](?:\s|$)", span, maxsplit=1)[0])
    joined, last_end = [formulas[0][2]], formulas[0][1]
    for start, end, formula in formulas[1:]:
        between = span[last_end:start]
        if not between.strip() or re.sub("[,;]", " ", between).lower().split() not in _JOINS:
            break
        joined.append(formula)
        last_end = end
    return ", ".join(joined)


def _undecorated(text: str) -> str:
    return text.strip(_DECORATION).rstrip(_DECORATION + ".")  # .5 begins with its point


def _formulas(text: str) -> list[tuple[int, int, str]]:
    """Start, end and contents of each formula, closed and not blank; one in single dollars ends with its line."""
    found = []
    opening: re.Match[str] | None = None
    for match in _DELIMITER.finditer(text):
        mark = match[0]
        if opening is None:
            opening = match if mark in _CLOSING else None
        elif mark == _CLOSING[opening[0]]:
            if contents := text[opening.end() : match.start()].strip().rstrip(".,"):
                found.append((opening.start(), match.end(), contents))
            opening = None
        elif mark == "\n" and opening[0] == "$":
            opening = None
    return found


# --- equality ---------------------------------------------------------------------------------------------------------

_SPACING = re.compile(r"\\(?:left|right|[bB]igg?[lr]?|displaystyle|quad|qquad)(?![a-zA-Z])|\\[!,;: ]|[\s~$]")
_TEXT = re.compile(r"\\(?:text(?:bf|rm|it|sf|normal)?|mbox|mathrm|mathbf|operatorname) *\{([^{}]*)\}")
_INTEGER = r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)"
_DECIMAL = re.compile(r"[-+]?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{1,3})?")
_RATIO = re.compile(
    rf"(?P<sign>[-+]?)(?:\\frac\{{(?P<a>{_INTEGER})\}}\{{(?P<b>{_INTEGER})\}}|(?P<c>\d+)/(?P<d>\d+)"
    r"|\\frac(?P<e>\d)(?P<f>\d)|\\frac(?P<g>\d)\{(?P<h>\d+)\}|\\frac\{(?P<i>\d+)\}(?P<j>\d))"
)


def grade_math(_grader: MathGrader, completion: str, payload: Payload) -> Verdict:
    """Grade against ``payload["answer"]``, LaTeX or a list of accepted LaTeX.

    Equal are: the same LaTeX up to spacing and text commands; the same exact number; and what math-verify calls equal,
    unless the brackets around a list, the base of a number or the case of a variable differ. Words (a gold of nothing
    but text) are compared as words. Decimals are not rounded: 0.33 is not 1/3. As math-verify has it, units and
    degree signs count for nothing, and 50\\% equals both 50 and 0.5.

    Rules `refused_*`: SymPy is not asked about a text that is very long or deep or holds powers that it might evaluate
    for longer than anyone waits; the answer counts as wrong.

    Raises:
        GraderError: the payload holds no answer.
    """
    golds = read_golds(payload)
    found = extract_math(completion)
    if found.value is None:
        return nothing_found(found)
    equal_at_sight = {gold: _at_sight(gold, found.value) for gold in golds}
    if any(equal_at_sight.values()):
        return compared(True, found, found.value)
    open_golds = [gold for gold, equal in equal_at_sight.items() if equal is None]
    if open_golds and (reason := refusal(found.value)):
        return Verdict(0.0, f"refused_{reason}", found.ambiguous, f"SymPy is not asked about {brief(found.value)}")
    return compared(any(_verified(gold, found.value) for gold in open_golds), found, found.value)


def read_golds(payload: Payload) -> list[str]:
    """The accepted answers of a gold payload, in LaTeX.

    Raises:
        GraderError: it holds none.
    """
    answer = payload.get("answer")
    golds = [str(item) for item in (answer if isinstance(answer, list) else [answer]) if item is not None]
    # A gold may come as it stands in a solution: boxed, or in dollars.
    golds = [(boxed_spans(gold) or [gold])[-1].strip().strip("$") for gold in golds]
    if not golds or not all(golds):
        raise GraderError("the gold payload has no 'answer' in LaTeX; map it under the benchmark's fields")
    return golds


def _at_sight(gold: str, answer: str) -> bool | None:
    """Whether two answers are equal where strings and exact numbers decide it; None where they do not."""
    plain_gold, plain_answer = plain_latex(gold), plain_latex(answer)
    if plain_gold == plain_answer:
        return True
    if _is_words(gold):
        return _words(gold) == _words(answer)
    exact_gold, exact_answer = _exact(plain_gold), _exact(plain_answer)
    if exact_gold is not None and exact_answer is not None:
        return exact_gold == exact_answer
    kinds = {_bracket_kind(plain_gold), _bracket_kind(plain_answer)} - {None}
    same_kind = (
        len(kinds) < 2 and _base(plain_answer) in (None, _base(plain_gold)) and _same_case(plain_gold, plain_answer)
    )
    return None if same_kind else False


def plain_latex(latex: str) -> str:
    """LaTeX without what changes only its looks."""
    plain = _SPACING.sub("", latex.replace("{,}", ",").replace("\u2212", "-"))
    plain = re.sub(r"\\[dtc]frac", r"\\frac", _TEXT.sub(r"\1", plain))
    return plain.replace(r"\$", "").rstrip(".")


def _is_words(latex: str) -> bool:
    """Whether a gold is text alone: one text command, or letters alone with a word among them."""
    latex = latex.strip()
    return bool(_TEXT.fullmatch(latex) or re.fullmatch(r"(?=.*[A-Za-z]{3})[A-Za-z ]+", latex))


def _words(latex: str) -> str:
    return " ".join(_TEXT.sub(r"\1", latex).replace("$", " ").casefold().strip(" \t().").split())


def _exact(plain: str) -> Fraction | None:
    """The number that is written in digits, as a decimal or one fraction of integers."""
    if len(plain) > MAX_DIGITS:
        return None
    if _DECIMAL.fullmatch(plain):
        return Fraction(Decimal(plain.replace(",", "")))
    match = _RATIO.fullmatch(plain)
    if match is None:
        return None
    above, below = (
        Fraction(part.replace(",", "")) for name, part in match.groupdict().items() if part and name != "sign"
    )
    return (-1 if match["sign"] == "-" else 1) * above / below if below else None


def _bracket_kind(plain: str) -> str | None:
    """The brackets of a list, "" without any; None for all else. A set's braces say no more than none."""
    plain = re.split(r"\\in(?![a-z])", plain)[-1].rpartition("=")[2]
    opening = re.match(r"\\\{|[(\[]", plain)
    closing = re.search(r"(?:\\\}|[)\]])$", plain)
    if "," not in plain:
        return None
    if opening is None or closing is None:
        return "" if re.match(r"[-+\d\w\\.]", plain) and not re.search(r"\\(?:cup|begin)", plain) else None
    if re.search(r"\\c[ua]p|[)\]][^)\],]*[,]", plain):
        return None  # several intervals or tuples
    kind = opening[0] + closing[0]
    return "" if kind == r"\{\}" else kind


def _base(plain: str) -> str | None:
    """The base that a number is written in."""
    match = re.fullmatch(r"[0-9A-F]+_\{?(\d+)\}?", plain)
    return match[1] if match else None


def _same_case(gold: str, answer: str) -> bool:
    """Whether variables that differ in no more than case do not differ at all; math-verify takes R for r."""
    letters = [set(re.findall(r"[A-Za-z]", re.sub(r"\\[A-Za-z]+", "", text))) for text in (gold, answer)]
    folded = [{letter.lower() for letter in found} for found in letters]
    return folded[0] != folded[1] or letters[0] == letters[1]


_DECIMALS = 10
"""Floats of both sides are rounded to this many decimals. Six, the default, would make 0.333333 a third."""
_TINY = 1e-6
"""Below this size numbers are compared by their ratio. math-verify takes differences below 1e-15 for none; from here on
those are less than a part in a billion, which ``_RATIO_TOLERANCE`` takes for none as well."""
_RATIO_TOLERANCE = 1e-9


def _verified(gold: str, answer: str) -> bool:
    """Whether math-verify calls an answer equal to a gold."""
    parsed_gold, parsed_answer = _parsed(gold), _parsed(answer)
    if not parsed_gold or not parsed_answer:
        return False
    equal = _math_verify().verify(parsed_gold, parsed_answer, float_rounding=_DECIMALS, timeout_seconds=None)
    return equal and not _differ_minutely(parsed_gold[0], parsed_answer[0])


def library_facts(_grader: MathGrader) -> dict[str, str]:
    """Import and run what the first comparison in a process waits a second for, and tell the libraries' versions."""
    _verified(r"\frac{1}{2}", "x^2")
    return {name: version(name) for name in ("math-verify", "latex2sympy2_extended", "sympy")}


@lru_cache(maxsize=1)
def _math_verify() -> ModuleType:
    """The library, told once not to warn that it was told to use no signals."""
    import math_verify

    logging.getLogger("math_verify").setLevel(logging.ERROR)
    module: ModuleType = math_verify
    return module


def _parsed(latex: str) -> list[Any]:
    """The text as math-verify's SymPy expressions; none when it cannot be parsed."""
    library = _math_verify()
    boxed = [library.LatexExtractionConfig(boxed_match_priority=0)]
    spaced = re.sub(r"\\[()\[\]](?!\w)|(?<!\\)\$", " ", latex)
    parsed: list[Any] = library.parse(f"\\boxed{{{spaced}}}", boxed, fallback_mode="no_fallback", parsing_timeout=None)
    return parsed


def _differ_minutely(gold: Any, answer: Any) -> bool:
    """Whether two tiny numbers differ; math-verify takes any difference below 1e-15 for none."""
    try:
        values = [complex(side.evalf(20)) for side in (gold, answer)]
    except Exception:  # not numbers: SymPy says so in many ways
        return False
    if max(map(abs, values)) > _TINY:
        return False
    return not all(
        isclose(a, b, rel_tol=_RATIO_TOLERANCE) for a, b in zip(*((v.real, v.imag) for v in values), strict=True)
    )
