"""Texts of strangers become printable and short, and counts agree with their nouns."""

from __future__ import annotations

import pytest

from trinity_assets.errors import alike
from trinity_assets.texts import counted, cut_within, encodable, escaped, printable, quoted


def test_half_a_surrogate_pair_becomes_a_replacement_and_a_whole_one_its_character() -> None:
    assert encodable("a\ud83d") == "a\ufffd"
    assert encodable("\ud83d\ude00") == "\U0001f600"


def test_what_is_not_printable_is_an_escape() -> None:
    assert printable("a\x1b[31m\n b\ud800") == "a\\x1b[31m b\\ud800"
    assert escaped("a\nb\x1b") == "a\nb\\x1b"


@pytest.mark.parametrize("length", [60, 61, 1000])
def test_a_long_text_is_cut_to_what_a_message_quotes(length: int) -> None:
    expected = "x" * 60 if length == 60 else "x" * 57 + "..."
    assert printable("x" * length) == expected
    assert quoted("x" * length) == repr(expected)


def test_a_text_cut_within_keeps_both_ends() -> None:
    assert cut_within("0123456789", 10) == "0123456789"
    assert cut_within("0123456789a", 10) == "012 ... 9a"
    assert cut_within("one\ntwo\x1b", 20) == "one two\\x1b"


def test_counts_agree_with_their_nouns() -> None:
    assert [counted(number, "row") for number in (0, 1, 2)] == ["0 rows", "1 row", "2 rows"]
    assert counted(1, "task has", "tasks have") == "1 task has"
    assert counted(2, "task has", "tasks have") == "2 tasks have"


def test_a_fault_of_many_places_is_told_at_the_first() -> None:
    faults = [("row 0", "empty"), ("row 1", "late"), ("row 2", "empty"), ("row 3", "empty"), ("row 4", "late")]
    assert alike(faults, "row") == ["row 0: empty (and 2 rows more like it)", "row 1: late (and 1 row more like it)"]
