"""The number that a completion answers, exactly: no float, no rounding, no limit on digits."""

import re
import unicodedata
from collections.abc import Callable, Iterator
from fractions import Fraction

from trinity_assets.grading.extraction import Extraction, answer_text, boxed_spans, marked_spans

_SEPARATORS = ",\u00a0\u202f\u2009'\u2019_"
"""Between groups of three digits: a comma, a space of typography's (no-break, narrow no-break, thin), what Swiss and
programmers write."""
# Full-width digits and signs, the minus signs that are no hyphen, and the arrows that lead to a result.
_ASCII_DIGITS = str.maketrans(
    "\uff10\uff11\uff12\uff13\uff14\uff15\uff16\uff17\uff18\uff19\uff0c\uff0e\uff0d\u2212\ufe63\u2192\u21d2",
    "0123456789,.---==",
)
_VULGAR = {"½": ".5", "¼": ".25", "¾": ".75", "⅕": ".2", "⅖": ".4", "⅗": ".6", "⅘": ".8"} | {
    "⅛": ".125", "⅜": ".375", "⅝": ".625", "⅞": ".875", "⅓": " 1/3", "⅔": " 2/3", "⅙": " 1/6", "⅚": " 5/6"
}  # fmt: skip
_REWRITTEN: list[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]] = [
    (re.compile(r"\\?[$£€]"), ""),
    (re.compile(r"(?<!\d)\*\*|\*\*(?!\d)"), ""),  # emphasis: 2**3 is a power, **18** is not
    (re.compile(r"(?<=\d)(?:\{,\}|,\\!)(?=\d)"), ","),
    (re.compile(r"(?<=\d)\\[,;: ](?=\d)"), "\u2009"),
    (re.compile(r"\\(?:[Rr]ightarrow|to)(?![a-zA-Z])"), "="),
    (re.compile(r"(?P<after>\d?)\\[dtc]?frac *(?:\{(\d+)\}|(\d)) *(?:\{(\d+)\}|(\d))"), r"\g<after> \2\3/\4\5"),
    (re.compile(r"-[ ](?=\d+/\d)"), "-"),  # what the line above parts: -\frac{1}{2}
    (re.compile(r"\bnegative[ \t]+(?=\.?\d)", re.IGNORECASE), "-"),
    (re.compile(r"(^[#*_ \t]*+|[=:({]|\b(?:is|are|was|be)\b)[ \t]*minus[ \t]+(?=\.?\d)", re.I | re.M), r"\1 -"),
    (re.compile(f"[ ]?([{''.join(_VULGAR)}])"), lambda match: _VULGAR[match[1]]),
]
"""Spellings, and others for them that ``_NUMBER`` reads."""
_SCALES = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12, "k": 3, "m": 6, "b": 9, "bn": 9}
"""Words and letters after a number, and the power of ten that each multiplies it by."""
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
# A minus is a sign only when it touches its number and nothing that could be an operand, a word or a bracket precedes
# it: "- 5" is a bullet, "16 -3" and "10-3" subtract, "covid-19" joins.
_NUMBER = re.compile(
    rf"(?P<sign>(?<![^\W_])(?<![)\]}}])(?<![0-9)\]}}][ \t])[-\u2013])?"
    rf"(?:(?<![^\W_])(?P<whole>\d{{1,3}}(?:(?P<sep>[{_SEPARATORS}])\d{{3}}(?:(?P=sep)\d{{3}})*)(?![\d])|\d+)"
    rf"(?P<part>\.\d+)?|(?<![\w.])(?P<bare>\.\d+))"
    rf"(?P<exp>[eE][+-]?\d+(?!\w))?"
    r"(?:[ \t]*(?:\\times|\\cdot|[\u00d7\u00b7*x])[ \t]*10(?:[ \t]*(?:\^|\*\*)[ \t]*(?P<brace>\{)?"
    r"(?P<power>[-+]?\d+)(?(brace)\})|(?P<super>[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)))?"
    rf"(?:[ \t](?P<scale>thousand|million|billion|trillion)\b|(?P<letter>(?-i:[kKMB]|bn))(?!\w)"
    r"|(?:[ \t]+(?P<above>\d{1,15}))?/(?P<below>\d{1,15})(?!\.?\d|/\d))?",
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
    span, the last number of an unmarked line. Equal numbers have equal strings. There is no value where that number is
    no decimal (1/3), and where a marked span denies it, or joins it to another ("18 or 20", "18 * 2", "18:30").
    """
    answer = answer_text(text)
    if isinstance(answer, Extraction):
        return answer
    plain = answer.translate(_ASCII_DIGITS)
    for spelling, other in _REWRITTEN:
        plain = spelling.sub(other, plain)
    for rule, find_spans in (("hash_line", _hash_spans), ("boxed", boxed_spans), ("answer_marker", marked_spans)):
        readings = [reading for span in find_spans(plain) if (reading := _marked_reading(span))]
        if readings:
            value, numbers = readings[-1]
            return Extraction(value, rule, len({first for first, _ in readings}) > 1 or len(numbers) > 1)
    if (whole := _closed_up(plain)) != plain:
        return Extraction(_result_numbers(whole)[0], "last_number", ambiguous=True)
    for line in reversed(plain.split("\n")):
        if found := _result_numbers(line):
            return Extraction(found[-1], "last_number", len(set(found)) > 1)
    return Extraction(None, "no_number")


_ANNOUNCED = re.compile(r"\b(?:answer|result|total)\b", re.IGNORECASE)
_LETTER = re.compile(r"[^\W\d_]")
_NUMBERED = re.compile(r"[ \t]*(\d{1,3})[.)][ \t]+[^\W\d_]")


def _hash_spans(text: str) -> list[str]:
    """What follows each `####`, except Markdown headings.

    Headings are words before a number that announce no result, sections that are counted from one, and words after a
    number ("3 checks done") beside another line that is only a number.
    """
    lines = re.findall(r"####([^\n]*)", text)
    numbered = [match[1] for line in lines if (match := _NUMBERED.match(line))]
    counted = len(numbered) > 1 and numbered == [str(number) for number in range(1, len(numbered) + 1)]
    spans, only_numbers = [], []
    for line in lines:
        if counted and _NUMBERED.match(line):
            continue
        lead, *rest = re.split(_NUMBER_LIKE, line, maxsplit=1)
        announced = "=" in line or _ANNOUNCED.search(lead)
        if announced or not _LETTER.search(lead):
            spans.append(line)
            if announced or not _LETTER.search("".join(rest)):
                only_numbers.append(line)
    return only_numbers if any(map(_marked_reading, only_numbers)) else spans


_NUMBER_LIKE = re.compile(r"[.\d][\d.,]*(?:e[+-]?\d+)?", re.IGNORECASE)
_JOINED = re.compile(
    r"[ \t)\]}]*+(?:[\^*\u00d7\u00f7/:+\u2013-]|x|\\(?:times|cdot|div)|(?:\\text\{)?[ \t]*or[ \t]*\}?)"
    r"[ \t({\[]*+-?\.?\d"
    r"|[)\]}]+!",
    re.IGNORECASE,
)
_DENIED = re.compile(r"\b(?:not|n't)[ \t]+$", re.IGNORECASE)
_UNSETTLED = re.compile(r"\b(?:between|either|neither)[ \t]+$", re.IGNORECASE)
_LIST = re.compile(r"\W*\d[\d.]*(?:,[ \t]+\d[\d.]*)+\W*")


def _marked_reading(span: str) -> tuple[str | None, set[str | None]] | None:
    """The first number that a marked span does not deny, None where it stands for no decimal; and all its numbers.

    None where it holds no numbers.
    """
    span = _closed_up(span)
    result = span.rpartition("=")[2]
    matches = list(_NUMBER.finditer(result)) or list(_NUMBER.finditer(result := span))
    if not matches:
        return None
    values: set[str | None] = {_canonical(match) for match in matches}
    for match in matches:
        before = result[max(0, match.start() - 12) : match.start()]
        if _DENIED.search(before):
            continue
        unsettled = _UNSETTLED.search(before) or _JOINED.match(result, match.end()) or _LIST.fullmatch(result)
        return (None if unsettled else _canonical(match)), values
    return None, values


_SPACED = re.compile(r"([^\w.]*+\d{1,3}(?: \d{3})+)((?!\d)(?:\.\d+)?[^\d/^*+=\u00d7\u00f7:]*)")


def _closed_up(span: str) -> str:
    """A span that is one number with plain spaces between its groups of three digits, with others that say so."""
    match = _SPACED.fullmatch(span)
    return span if match is None else re.sub(r"(?<=\d) (?=\d)", "\u2009", match[1]) + match[2]


def _result_numbers(span: str) -> list[str | None]:
    """The canonical numbers right of the span's last `=`, or in all of it when there are none."""
    return list(_canonical_numbers(span.rpartition("=")[2])) or list(_canonical_numbers(span))


def _canonical_numbers(text: str) -> Iterator[str | None]:
    return map(_canonical, _NUMBER.finditer(text))


def _canonical(match: re.Match[str]) -> str | None:
    """The one spelling of a number, made from its text: arithmetic would round it or limit its length.

    None for a fraction that is no decimal.
    """
    whole = _ascii(_NOT_DIGITS.sub("", match["whole"] or ""))
    part = _ascii((match["part"] or match["bare"] or ".")[1:])
    exponent = _exponent(_ascii(match["exp"][1:])) if match["exp"] else 0
    exponent += _exponent(_ascii(match["power"] or (match["super"] or "").translate(_SUPERSCRIPTS)))
    exponent += _SCALES[(match["scale"] or match["letter"]).lower()] if match["scale"] or match["letter"] else 0
    if match["below"]:
        decimal = None if part or exponent else _decimal_digits(whole, match["above"], match["below"])
        if decimal is None:
            return None
        whole, part = decimal
    digits = (whole + part).lstrip("0")
    exponent -= len(part)
    significant = digits.rstrip("0")
    if not significant:
        return "0"
    exponent += len(digits) - len(significant)
    return ("-" if match["sign"] else "") + _spelled(significant, exponent)


_MAX_FRACTION_DIGITS = 15
"""Digits of either side of a fraction. No benchmark's come near."""


def _decimal_digits(whole: str, above: str | None, below: str) -> tuple[str, str] | None:
    """The digits before and after the point of `whole/below`, or of `whole above/below`; None if it is no decimal."""
    if len(whole) > _MAX_FRACTION_DIGITS or not int(below):
        return None
    value = Fraction(int(whole), int(below)) if above is None else int(whole) + Fraction(int(above), int(below))
    places = 4 * _MAX_FRACTION_DIGITS  # a denominator of 15 digits divides no larger power of ten if it divides any
    scaled = value * 10**places
    if scaled.denominator != 1:
        return None
    digits = str(scaled.numerator).rjust(places + 1, "0")
    return digits[:-places], digits[-places:]


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
