"""The number that a completion answers, exactly: no float, no rounding, no limit on digits."""

import re
import unicodedata
from collections.abc import Iterator

from trinity_assets.grading.extraction import Extraction, answer_text, boxed_spans, marked_spans

_SEPARATORS = ",\u00a0\u202f\u2009"
"""Between groups of three digits: a comma, or one of typography's spaces (no-break, narrow no-break, thin)."""
# Full-width digits and signs, and the minus signs that are no hyphen.
_ASCII_DIGITS = str.maketrans(
    "\uff10\uff11\uff12\uff13\uff14\uff15\uff16\uff17\uff18\uff19\uff0c\uff0e\uff0d\u2212\ufe63", "0123456789,.---"
)
_CURRENCY = re.compile(r"\\?[$£€]")
_EMPHASIS = re.compile(r"(?<!\d)\*\*|\*\*(?!\d)")  # 2**3 is a power, **18** is not
_SCALES = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
"""Words after a number, and the power of ten that each multiplies it by."""
# A minus is a sign only when it touches its number and nothing that could be an operand, a word or a bracket precedes
# it: "- 5" is a bullet, "16 -3" and "10-3" subtract, "covid-19" joins.
_NUMBER = re.compile(
    rf"(?P<sign>(?<![^\W_])(?<![)\]}}])(?<![0-9)\]}}][ \t])-)?"
    rf"(?:(?<![^\W_])(?P<whole>\d{{1,3}}(?:(?P<sep>[{_SEPARATORS}])\d{{3}}(?:(?P=sep)\d{{3}})*)(?![\d])|\d+)"
    rf"(?P<part>\.\d+)?|(?<![\w.])(?P<bare>\.\d+))"
    rf"(?P<exp>[eE][+-]?\d+(?!\w))?"
    rf"(?:[ \t](?P<scale>{'|'.join(_SCALES)})\b)?",
    re.IGNORECASE,
)
_NOT_DIGITS = re.compile(rf"[{_SEPARATORS}]")

_PLAIN_ZEROS = 40
"""A number whose exponent adds more zeros than this is written with its exponent: "1e999" stays six characters long."""

_MAX_EXPONENT = 999_999_999
"""Exponents beyond this, far from any answer, are read as this."""


def extract_number(text: str) -> Extraction:
    """The number that a completion answers, as an exact canonical decimal string ("1450000", "-3", "18.5", "1E+999").

    The first of these that holds a number: the last `####` line, the last `\\boxed{}`, the last "answer is" / "answer:"
    line, the last line with a number. Within it, what is right of its last `=` is read: the first number of a marked
    span, the last number of an unmarked line. Equal numbers have equal strings.
    """
    answer = answer_text(text)
    if isinstance(answer, Extraction):
        return answer
    plain = _EMPHASIS.sub("", _CURRENCY.sub("", answer.translate(_ASCII_DIGITS)))
    for rule, find_spans in (("hash_line", _hash_spans), ("boxed", boxed_spans), ("answer_marker", marked_spans)):
        readings = [numbers for span in find_spans(plain) if (numbers := _result_numbers(span))]
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


def _result_numbers(span: str) -> list[str]:
    """The canonical numbers right of the span's last `=`, or in all of it when there are none."""
    return list(_canonical_numbers(span.rpartition("=")[2])) or list(_canonical_numbers(span))


def _canonical_numbers(text: str) -> Iterator[str]:
    return map(_canonical, _NUMBER.finditer(text))


def _canonical(match: re.Match[str]) -> str:
    """The one spelling of a number, made from its text: arithmetic would round it or limit its length."""
    whole = _ascii(_NOT_DIGITS.sub("", match["whole"] or ""))
    part = _ascii((match["part"] or match["bare"] or ".")[1:])
    exponent = _exponent(_ascii(match["exp"][1:])) if match["exp"] else 0
    exponent += _SCALES[match["scale"].lower()] if match["scale"] else 0
    digits = (whole + part).lstrip("0")
    exponent -= len(part)
    significant = digits.rstrip("0")
    if not significant:
        return "0"
    exponent += len(digits) - len(significant)
    return (match["sign"] or "") + _spelled(significant, exponent)


def _spelled(digits: str, exponent: int) -> str:
    """``digits`` times ten to the ``exponent``; ``digits`` neither begins nor ends with a zero."""
    if 0 <= exponent <= _PLAIN_ZEROS:
        return digits + "0" * exponent
    point = len(digits) + exponent
    if exponent < 0 and point >= -_PLAIN_ZEROS:
        return f"{digits[:point]}.{digits[point:]}" if point > 0 else f"0.{'0' * -point}{digits}"
    return f"{digits}E{exponent:+d}"


def _exponent(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    digits = text.lstrip("+-").lstrip("0")
    return sign * (int(digits or "0") if len(digits) < 10 else _MAX_EXPONENT)


def _ascii(digits: str) -> str:
    """The digits of any script as ASCII digits; signs stay."""
    if digits.isascii():
        return digits
    return "".join(str(unicodedata.decimal(char)) if char.isdecimal() else char for char in digits)
