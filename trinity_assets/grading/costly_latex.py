"""Which LaTeX SymPy must not be asked about: texts that it parses or evaluates for longer than anyone waits.

Bounds far above any answer to a benchmark. They spare most of the waiting; the process that grades has limits for the
rest.
"""

from __future__ import annotations

import re

MAX_LATEX = 1000
"""Characters of an answer; beyond them only strings are compared. The longest gold of MATH-500 has 53."""

MAX_DIGITS = 400
"""Digits in a row."""
_MAX_DEPTH = 20
"""Brackets inside each other."""
_MAX_EXPONENT = 9999
"""The product of all exponents in a text without variables, which bounds the digits that SymPy would write out."""
_MAX_SYMBOLIC_EXPONENT = 100
"""The product of all exponents in a text with variables, which bounds the degree of a polynomial."""
_MAX_EXPANSION = 20
"""The product of the exponents of brackets in a text with variables, which bounds the terms of the multiplied out."""
_MAX_FUNCTIONS = 6
"""Elementary functions in a text, each of which may be rewritten by the others."""


def refusal(latex: str) -> str | None:
    """Why SymPy must not be asked about a text; None if it may."""
    if len(latex) > MAX_LATEX:
        return "length"
    if not latex.isprintable() and any(not char.isprintable() and not char.isspace() for char in latex):
        return "characters"
    depth = deepest = 0
    for char in latex:
        depth += (char in "([{") - (char in ")]}")
        deepest = max(deepest, depth)
    if deepest > _MAX_DEPTH:
        return "depth"
    if re.search(rf"\d{{{MAX_DIGITS}}}", latex):
        return "digits"
    if re.search(r"\d{4,}\s*\}?\)?\s*!|!\s*!|\\(?:int|sum|prod|lim|oint|iint)(?![a-zA-Z])", latex):
        return "operator"
    if len(_FUNCTION.findall(latex)) > _MAX_FUNCTIONS:
        return "functions"
    return _power_refusal(latex)


_POWER_OF_MANY = re.compile(r"(?:[)}\]]|\\[A-Za-z]+)$")
_FUNCTION = re.compile(r"\\(?:arc)?(?:sin|cos|tan|cot|sec|csc|sinh|cosh|tanh|log|ln|exp)(?![a-z])")


def _power_refusal(latex: str) -> str | None:
    """Powers of numbers may have many digits, powers of sums many terms; powers of powers multiply both."""
    spaceless = re.sub(r"\s|\\[!,;: ]", "", latex.replace("**", "^"))
    of_groups, of_atoms = 1, 1
    for match in re.finditer(r"\^", spaceless):
        exponent = _group_at(spaceless, match.end())
        if spaceless.startswith(("^", "!"), match.end() + len(exponent)):
            return "power"
        if re.search(r"[\^!]", exponent) and not _has_variables(exponent):
            return "power"
        size = max((int(digits) for digits in re.findall(r"(?<![.\d])\d+", exponent)), default=1)
        if _POWER_OF_MANY.search(spaceless, max(0, match.start() - 12), match.start()):
            of_groups *= max(size, 1)
        else:
            of_atoms = max(of_atoms, size)
    if _has_variables(spaceless):
        return "power" if of_groups > _MAX_EXPANSION or of_groups * of_atoms > _MAX_SYMBOLIC_EXPONENT else None
    return "power" if of_groups * of_atoms > _MAX_EXPONENT else None


def _has_variables(latex: str) -> bool:
    """Whether letters stand outside of commands."""
    return bool(re.search(r"[A-Za-z]", re.sub(r"\\[A-Za-z]+", "", latex)))


def _group_at(text: str, place: int) -> str:
    """The bracketed group at a place, or the command or the run of digits or the one character there."""
    opening = text[place : place + 1]
    if opening not in ("{", "("):
        match = re.compile(r"-?(?:\d+|\\[A-Za-z]+(?:\{[^{}]*\})*|.)", re.DOTALL).match(text, place)
        return match[0] if match else ""
    depth = 0
    for end in range(place, len(text)):
        depth += (text[end] in "{(") - (text[end] in "})")
        if depth == 0:
            return text[place : end + 1]
    return text[place:]
