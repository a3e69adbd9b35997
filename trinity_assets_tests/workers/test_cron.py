"""Cron lines: what is accepted here, Dagster reads as well; what never comes is refused."""

from __future__ import annotations

import re

import dagster as dg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trinity_assets.workers.cron import require_cron


def dagster_reads(line: str) -> bool:
    try:
        dg.ScheduleDefinition(name="s", job_name="j", cron_schedule=line)
    except dg.DagsterInvalidDefinitionError:
        return False
    return True


@pytest.mark.parametrize(
    "line",
    ["0 6 * * 1", "*/15 1-5,7 1,15 jan-mar mon", "0 0 29 2 *", "0 0 31 jan,feb *", "0 0 * * SUN", "59 23 31 12 7"],
)
def test_a_line_that_comes_is_accepted(line: str) -> None:
    assert require_cron(line) == line
    assert dagster_reads(line)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("0 6 * *", "a cron line has five fields (minute hour day month weekday), as in '0 6 * * 1'; not '0 6 * *'"),
        ("@daily", "a cron line has five fields"),
        ("60 * * * *", "'60' is no minute; allowed: 0-59"),
        ("0 0 1 foo *", "'foo' is no month; allowed: 1-12 or jan-dec"),
        ("0 0 * * 8", "'8' is no weekday; allowed: 0-7 or sun-sat"),
        ("0 0 L * *", "'L' is no day; allowed: 1-31"),
        ("0 0 * * 1#2", "'1#2' is no weekday; a field is *, or numbers and ranges, as in 1,15 or 1-5"),
        ("1,,2 * * * *", "'' is no minute"),
        ("5/10 * * * *", "the step in '5/10' needs a range, as in 5-59/10"),
        ("0-30/0 * * * *", "the step in '0-30/0' is not within 1-59"),
        ("0 0 * * fri-mon", "the range 'fri-mon' runs backwards"),
        ("0 0 30 2 *", "no month of '0 0 30 2 *' has a day 30; it would never come on one"),
        ("0 0 30 2 1", "no month of '0 0 30 2 1' has a day 30"),
        ("0 0 31 4,jun *", "no month of '0 0 31 4,jun *' has a day 31"),
    ],
)
def test_a_line_that_cannot_be_read_or_never_comes_is_refused(line: str, said: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(said)}"):
        require_cron(line)


FIELDS = st.one_of(
    st.sampled_from(["*", "*/2", "1-5", "1,3", "2-4/2", "30", "31", "feb", "0", "mon", "0-7", "*/90"]),
    st.from_regex(r"[0-9*/,\-]{1,6}", fullmatch=True),
)


@given(st.lists(FIELDS, min_size=5, max_size=5))
def test_what_is_accepted_dagster_reads(fields: list[str]) -> None:
    line = " ".join(fields)
    try:
        require_cron(line)
    except ValueError:
        return
    assert dagster_reads(line)
