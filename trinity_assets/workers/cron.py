"""Cron lines: what Dagster's scheduler cannot read, or would wait for in vain, is found where the catalog is checked.

A line has five fields: minute, hour, day, month, weekday. A field is ``*``, or numbers and ranges (``1-5``), separated
by commas, with a step where one is wanted (``*/15``); months and weekdays have their English names, too (``mon``).
The scheduler knows a few more forms (``l``, ``#``); a line with one of those is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

EXAMPLE = "as in '0 6 * * 1'"

_ITEM = re.compile(r"(?:\*|(\w+)(?:-(\w+))?)(?:/([0-9]+))?")
"""``*``, a value or a range; a step."""

_LONGEST = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
"""Days of each month, of February in a leap year."""


@dataclass(frozen=True)
class _Field:
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()

    def value(self, text: str) -> int:
        if text.lower() in self.names:
            return self.names.index(text.lower()) + self.low
        if not text.isascii() or not text.isdigit() or not self.low <= int(text) <= self.high:
            names = f" or {self.names[0]}-{self.names[-1]}" if self.names else ""
            raise ValueError(f"{text!r} is no {self.name}; allowed: {self.low}-{self.high}{names}")
        return int(text)

    def values(self, text: str) -> set[int]:
        found: set[int] = set()
        for item in text.split(","):
            match = _ITEM.fullmatch(item)
            if match is None:
                raise ValueError(f"{item!r} is no {self.name}; a field is *, or numbers and ranges, as in 1,15 or 1-5")
            first, last, step = match.groups()
            if first is not None and last is None and step is not None:
                raise ValueError(f"the step in {item!r} needs a range, as in {first}-{self.high}/{step}")
            low = self.low if first is None else self.value(first)
            high = self.high if first is None else self.value(last or first)
            if low > high:
                raise ValueError(f"the range {item!r} runs backwards")
            if step is not None and not 0 < int(step) <= self.high - self.low:
                raise ValueError(f"the step in {item!r} is not within 1-{self.high - self.low}")
            found |= set(range(low, high + 1, int(step or 1)))
        return found


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("weekday", 0, 7, _WEEKDAYS),
)


def require_cron(line: str) -> str:
    """``line``, if it is one, and its months have a day that it names.

    Raises:
        ValueError: it is no cron line, or none of its months has such a day; says which field, and what is allowed.
    """
    written = line.split()
    if len(written) != len(_FIELDS):
        names = " ".join(field.name for field in _FIELDS)
        raise ValueError(f"a cron line has five fields ({names}), {EXAMPLE}; not {line!r}")
    _, _, days, months, _ = (field.values(text) for field, text in zip(_FIELDS, written, strict=True))
    # The scheduler refuses these days whatever the weekdays are, on which the line might come all the same.
    if all(min(days) > _LONGEST[month - 1] for month in months):
        raise ValueError(f"no month of {line!r} has a day {min(days)}; it would never come on one")
    return line
