"""Near-duplicate groups: tasks so alike that one in training would leak the other in testing.

Two questions are near duplicates when the Jaccard similarity of their word 5-grams is at least .8. A task joins the
group of the earliest task that it is a near duplicate of. The search for them is exact (:class:`SimilarityJoin`).

Groups that exist are never merged: a benchmark grows at its end, and a merge would move tasks that were trained on
into the test set or out of it. The price is a task that resembles two groups: it is in the earlier one, so a near
duplicate of it may lie on the other side of a split.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

GRAM_WORDS = 5
THRESHOLD = Fraction(4, 5)

_PART, _WHOLE = THRESHOLD.numerator, THRESHOLD.denominator
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_FIRST_LOOK, _LOOKED_AT_ONCE = 64, 4096


def words_of(question: str) -> list[str]:
    """The words and marks of ``question``, lower case."""
    return re.findall(r"\w+|[^\w\s]", question.casefold())


def shingles(question: str) -> np.ndarray:
    """The shingles of the words and marks of ``question``."""
    return shingles_of_words(words_of(question))


def shingles_of_words(words: Sequence[str]) -> np.ndarray:
    """The set of 5-grams of ``words`` as 64-bit hashes: (n,) uint64, ascending; of fewer words there is one.

    A hash stands for a text of five words: among ten million shingles two share one with a chance of 3 in a million.
    """
    numbers = [_word_hash(word) for word in words]
    numbers += [0] * (GRAM_WORDS - len(numbers))
    hashes = np.array(numbers, dtype=np.uint64)
    count = len(hashes) - GRAM_WORDS + 1
    grams = hashes[:count].copy()
    for place in range(1, GRAM_WORDS):
        grams *= _MULTIPLIER
        grams += hashes[place : place + count]
    return np.unique(grams)


@lru_cache(maxsize=200_000)
def _word_hash(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")


def near_duplicate_groups(questions: Iterable[str]) -> list[int]:
    """For each question the index of the earliest question of its group (its own, when it is alone).

    A question's group depends on the questions before it only, so tasks added at the end change no group's name and
    no earlier task's group.
    """
    join = SimilarityJoin([shingles(question) for question in questions])
    groups: list[int] = []
    for i in range(len(join)):
        earliest = next(join.earlier(i), None)
        groups.append(i if earliest is None else groups[earliest[0]])
    return groups


class SimilarityJoin:
    """Finds among many sets those with a Jaccard similarity of at least ``THRESHOLD``; exact, by prefix filtering.

    The elements of every set are ordered by how many sets hold them, the rarest first. Two sets of that similarity
    share an element among the first ``|s| - ceil(THRESHOLD |s|) + 1`` of each (Bayardo, Ma and Srikant, "Scaling up
    all pairs similarity search", 2007). Where the first that they share stands tells how many more can follow, and so
    rules out most pairs that share only what many sets hold (Xiao et al., "Efficient similarity joins for near
    duplicate detection", 2008). The pairs that are left are compared.

    Elements that one set alone holds are counted and not kept.
    """

    def __init__(self, sets: Sequence[np.ndarray]) -> None:
        self._sizes = np.array([len(one) for one in sets], dtype=np.int64)
        self._ranks, self._starts, kinds = _ranked(sets, self._sizes)
        self._mark = np.zeros(kinds, dtype=bool)
        self._alone = self._sizes - np.diff(self._starts)
        self._prefixes = self._sizes - -(-self._sizes * _PART // _WHOLE) + 1

        owners = np.repeat(np.arange(len(sets)), np.diff(self._starts))
        places = np.arange(len(owners)) - self._starts[owners] + self._alone[owners]
        early = places < self._prefixes[owners]
        owners, places, elements = owners[early], places[early], self._ranks[early]
        order = np.argsort(elements, kind="stable")
        self._holders = owners[order].astype(np.int32)
        self._holders_start = np.concatenate([[0], np.cumsum(np.bincount(elements, minlength=kinds))])
        # A holder y of an element at place q overlaps a set x in |y| - q elements at most, if it is their first.
        self._reach = ((_PART + _WHOLE) * (self._sizes[owners] - places) - _PART * self._sizes[owners])[order]

    def __len__(self) -> int:
        return len(self._sizes)

    def earlier(self, i: int) -> Iterator[tuple[int, float]]:
        """The sets before ``i`` that are similar to it, as (index, similarity), by ascending index."""
        start, size, alone = int(self._starts[i]), int(self._sizes[i]), int(self._alone[i])
        length = max(0, int(self._prefixes[i]) - alone)
        met: list[tuple[int, np.ndarray, np.ndarray]] = []
        for place, element in enumerate(self._ranks[start : start + length].tolist(), start=alone):
            first, last = self._holders_start[element], self._holders_start[element + 1]
            end = first + np.searchsorted(self._holders[first:last], i)
            if end > first:
                met.append((place, self._holders[first:end], self._reach[first:end]))
        # Often the earliest is all that is asked for, so where there are many the first look is short.
        many = sum(len(holders) for _, holders, _ in met) > _LOOKED_AT_ONCE
        low, high = 0, _FIRST_LOOK if many else i
        while met and low < i:
            yield from self._similar(i, np.array(self._within(met, size, low, high), dtype=np.int64))
            low, high = high, 4 * high

    def holding_all_of(self, i: int) -> list[int]:
        """The other sets that hold every element of set ``i``, ascending."""
        own = self._ranks[self._starts[i] : self._starts[i + 1]]
        if self._alone[i] or not len(own):
            return []
        elements, owners = self._by_element
        first, last = np.searchsorted(elements, [own[0], own[0] + 1])
        others = owners[first:last]
        self._mark[own] = True
        held = self._marked(others) == len(own)
        self._mark[own] = False
        found: list[int] = others[held & (others != i)].tolist()
        return found

    @cached_property
    def _by_element(self) -> tuple[np.ndarray, np.ndarray]:
        """Every element of every set, ascending, and the set that holds it."""
        order = np.argsort(self._ranks, kind="stable")
        owners = np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self._starts))
        return self._ranks[order], owners[order]

    def _within(self, met: list[tuple[int, np.ndarray, np.ndarray]], size: int, low: int, high: int) -> list[int]:
        """The holders in ``[low, high)`` that may overlap a set of ``size`` enough, ascending."""
        found: set[int] = set()
        for place, holders, reach in met:
            first, last = np.searchsorted(holders, [low, high])
            candidates = holders[first:last][reach[first:last] >= _PART * size]
            follow = (_PART + _WHOLE) * (size - place) - _PART * size
            found.update(candidates[_PART * self._sizes[candidates] <= follow].tolist())
        return sorted(found)

    def _similar(self, i: int, others: np.ndarray) -> Iterator[tuple[int, float]]:
        """Those of ``others`` that are similar to ``i``."""
        own = self._ranks[self._starts[i] : self._starts[i + 1]]
        first, count = 0, _FIRST_LOOK
        while first < len(others):
            looked = others[first : first + count]
            self._mark[own] = True
            shared = self._marked(looked)
            self._mark[own] = False
            union = self._sizes[i] + self._sizes[looked] - shared
            for place in np.flatnonzero(shared * _WHOLE >= union * _PART).tolist():
                yield int(looked[place]), float(shared[place] / union[place])
            first, count = first + count, 2 * count

    def _marked(self, sets: np.ndarray) -> np.ndarray:
        """How many elements of each of ``sets`` are marked."""
        starts, ends = self._starts[sets], self._starts[sets + 1]
        lengths = ends - starts
        firsts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        positions = np.arange(int(lengths.sum())) + np.repeat(starts - firsts, lengths)
        hits = np.concatenate([[0], np.cumsum(self._mark[self._ranks[positions]])])
        counts: np.ndarray = hits[firsts + lengths] - hits[firsts]
        return counts


def _ranked(sets: Sequence[np.ndarray], sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Every set's elements that another set holds too, as ranks, the rarest first.

    Returns:
        The ranks of all sets one after another (int32), where each set starts (n + 1, int64), and how many ranks
        there are.
    """
    elements = np.concatenate([*sets, np.empty(0, dtype=np.uint64)])
    distinct, counts = np.unique(elements, return_counts=True)
    shared = counts > 1
    distinct, counts = distinct[shared], counts[shared]
    rank_of = np.empty(len(distinct), dtype=np.int32)
    rank_of[np.argsort(counts, kind="stable")] = np.arange(len(distinct), dtype=np.int32)
    owners = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    if not len(distinct):
        return np.empty(0, dtype=np.int32), np.zeros(len(sizes) + 1, dtype=np.int64), 0
    places = np.minimum(np.searchsorted(distinct, elements), len(distinct) - 1)
    kept = distinct[places] == elements
    ranks, owners = rank_of[places[kept]], owners[kept]
    starts = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=len(sizes)))]).astype(np.int64)
    return ranks[np.lexsort((ranks, owners))], starts, len(distinct)
