"""Near-duplicate groups: tasks so alike that one in training would leak the other in testing.

Two questions belong together when the Jaccard similarity of their word 5-grams is at least .8; groups are the connected
components. MinHash with locality-sensitive hashing finds the candidates, the exact similarity decides.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

GRAM_WORDS = 5
THRESHOLD = 0.8
PERMUTATIONS = 128
SEED = 1


def shingles(question: str) -> frozenset[str]:
    """The set of word 5-grams of ``question``, lower case; a shorter question is one shingle."""
    words = re.findall(r"\w+|[^\w\s]", question.casefold())
    if len(words) <= GRAM_WORDS:
        return frozenset([" ".join(words)])
    return frozenset(" ".join(words[i : i + GRAM_WORDS]) for i in range(len(words) - GRAM_WORDS + 1))


def near_duplicate_groups(questions: Sequence[str]) -> list[int]:
    """For each question the index of the earliest question of its group (its own, when it is alone).

    The earliest names the group, so that tasks added at the end never rename one.
    """
    from datasketch import MinHash, MinHashLSH

    grams = [shingles(question) for question in questions]
    index = MinHashLSH(threshold=THRESHOLD, num_perm=PERMUTATIONS)
    parent = list(range(len(questions)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for i, own in enumerate(grams):
        sketch = MinHash(num_perm=PERMUTATIONS, seed=SEED)
        sketch.update_batch([gram.encode() for gram in sorted(own)])
        for j in index.query(sketch):
            if len(own & grams[j]) / len(own | grams[j]) >= THRESHOLD:
                low, high = sorted((root(i), root(j)))
                parent[high] = low
        index.insert(i, sketch)
    return [root(i) for i in range(len(questions))]
