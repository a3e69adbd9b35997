"""Near-duplicate groups: tasks so alike that one in training would leak the other in testing.

Two questions are near duplicates when the Jaccard similarity of their word 5-grams is at least .8. A task joins the
group of the earliest task that it is a near duplicate of. MinHash with locality-sensitive hashing finds the candidates,
the exact similarity decides.

Groups that exist are never merged: a benchmark grows at its end, and a merge would move tasks that were trained on
into the test set or out of it. The price is a task that resembles two groups: it is in the earlier one, so a near
duplicate of it may lie on the other side of a split.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

GRAM_WORDS = 5
THRESHOLD = 0.8
CANDIDATE_THRESHOLD = 0.5
"""Where the hashing is tuned to find half of the pairs. Tuned to .8 it found 40% of the pairs at .8; tuned to .5 it
misses one in twenty thousand."""
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

    A question's group depends on the questions before it only, so tasks added at the end change no group's name and
    no earlier task's group.
    """
    from datasketch import MinHash, MinHashLSH

    grams = [shingles(question) for question in questions]
    index = MinHashLSH(threshold=CANDIDATE_THRESHOLD, num_perm=PERMUTATIONS)
    groups: list[int] = []
    for i, own in enumerate(grams):
        sketch = MinHash(num_perm=PERMUTATIONS, seed=SEED)
        sketch.update_batch([gram.encode() for gram in sorted(own)])
        alike = [j for j in index.query(sketch) if len(own & grams[j]) / len(own | grams[j]) >= THRESHOLD]
        groups.append(groups[min(alike)] if alike else i)
        index.insert(i, sketch)
    return groups
