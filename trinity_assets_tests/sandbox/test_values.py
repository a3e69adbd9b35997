"""Plain values come back as they were, by exact type; anything else is refused on both ends."""

from __future__ import annotations

import collections
import decimal
import enum
import fractions
import math
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trinity_assets.sandbox.values import MalformedError, NotPlainError, TooLargeError, decode, encode

ROOM = 1 << 20
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.complex_numbers(allow_nan=False),
    st.text(st.characters()), st.binary(),
)  # fmt: skip
HASHABLE = st.one_of(SCALARS, st.tuples(SCALARS), st.frozensets(SCALARS, max_size=3))
VALUES = st.recursive(
    st.one_of(HASHABLE, st.sets(HASHABLE, max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(HASHABLE, inner, max_size=3),
    ),
    max_leaves=12,
)


class Point(NamedTuple):
    x: int
    y: int


def same(left: Any, right: Any) -> bool:
    """Equal, and of equal types all the way down: 1, 1.0 and True are not the same."""
    return bool(left == right) and repr(left) == repr(right)


@settings(derandomize=True, max_examples=300, deadline=None)
@given(VALUES)
def test_a_value_comes_back_as_it_was(value: object) -> None:
    back = decode(encode(value, ROOM))
    assert type(back) is type(value)
    assert back == value


@pytest.mark.parametrize(
    "value",
    [
        1,
        True,
        1.0,
        -0.0,
        math.inf,
        "\ud800 \0",
        b"\0",
        (1, [2.0, {"a": {3}}]),
        range(2, 9, 3),
        2j,
    ],
)
def test_types_and_signs_survive(value: object) -> None:
    assert same(decode(encode(value, ROOM)), value)


@pytest.mark.parametrize(
    "value", [fractions.Fraction(-1, 3), decimal.Decimal("1.50"), decimal.Decimal("NaN"), collections.deque([1, "a"])]
)
def test_numbers_and_queues_of_the_standard_library_survive(value: object) -> None:
    back = decode(encode(value, ROOM))
    assert (type(back), repr(back)) == (type(value), repr(value))


def test_integers_of_any_length_survive() -> None:
    for number in (10**6000, -(10**6000)):
        assert decode(encode(number, ROOM)) == number


def test_not_a_number_survives() -> None:
    assert math.isnan(decode(encode(math.nan, ROOM)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (collections.Counter("aab"), {"a": 2, "b": 1}),
        (collections.OrderedDict(a=1), {"a": 1}),
        (collections.defaultdict(int, a=1), {"a": 1}),
        (Point(1, 2), (1, 2)),
        (enum.IntEnum("Color", "RED").RED, 1),  # type: ignore[attr-defined]
        (bytearray(b"ab"), b"ab"),
    ],
)
def test_what_only_dresses_a_plain_value_up_counts_as_that(value: object, plain: object) -> None:
    assert same(decode(encode(value, ROOM)), plain)


def test_what_is_iterated_over_comes_as_an_iterator() -> None:
    for value in (iter([1, 2]), map(int, "12"), (x for x in (1, 2)), zip([1, 2]), filter(None, [1, 2])):
        expected = list(zip([1, 2])) if isinstance(value, zip) else [1, 2]
        back = decode(encode(value, ROOM))
        assert back != expected
        assert list(back) == expected  # type: ignore[call-overload]


def test_views_of_a_dict_stay_views() -> None:
    value = {"a": 1, "b": 1}
    assert decode(encode(value.keys(), ROOM)) == value.keys()
    assert decode(encode(value.items(), ROOM)) == value.items()
    assert list(decode(encode(value.values(), ROOM))) == [1, 1]  # type: ignore[call-overload]


class Sly(int):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__


@pytest.mark.parametrize("value", [object(), Sly(), [Sly()], {1: Sly()}, len, int, type("C", (), {})()])
def test_what_brings_its_own_behaviour_is_refused(value: object) -> None:
    with pytest.raises(NotPlainError):
        encode(value, ROOM)


def test_size_and_depth_are_bounded() -> None:
    assert encode("x" * 100, 105)
    with pytest.raises(TooLargeError, match="more than 104 bytes"):
        encode("x" * 100, 104)
    nested: list[Any] = []
    for _ in range(5):
        nested = [nested]
    assert decode(encode(nested, ROOM, 5), 5) == nested
    with pytest.raises(TooLargeError, match="nested deeper than 4"):
        encode(nested, ROOM, 4)
    with pytest.raises(MalformedError, match="too deep"):
        decode(encode(nested, ROOM, 6), 4)


@pytest.mark.parametrize(
    "data",
    [b"", b"X", b"i1", b"i2:1", b"i-1:", b"i 1:1", b"i1:g", b"u2:\xff\xff", b"l,N", b"l;N.", b"lN.", b"d,N.", b"s,l..",
     b"d,l.,N.", b"NN", b"f3:xyz", b"c1:1", b"r,N.", b"u999999999999:x", b"i" + b"9" * 40, b"I,N.", b"g,",
     b"q,i1:1,i1:0.", b"q,u1:a.", b"D1:x"],
)  # fmt: skip
def test_what_no_encoder_wrote_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedError):
        decode(data)


@settings(derandomize=True, max_examples=500, deadline=None)
@given(st.one_of(st.binary(max_size=60), st.text("NTFifcubDdlstzrgKVIqQ,.:0123456789", max_size=60).map(str.encode)))
def test_random_bytes_are_a_value_or_malformed(data: bytes) -> None:
    try:
        decode(data)
    except MalformedError:
        return
    assert data[:1] in b"NTFifcubDdlstzrgKVIqQ"
