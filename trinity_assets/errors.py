"""The one hierarchy of errors: each says what was wrong, where, and what to do about it.

Belongs here: the errors that a caller tells apart, and how a message lists many faults. Bugs stay ordinary Python
exceptions and are never caught.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trinity_assets.texts import counted

FAULTS_SHOWN = 20
"""How many faults, or names of what is at fault, one message lists."""


def listed(faults: Sequence[str], separator: str = "; ") -> str:
    """The first faults, and how many more there are."""
    more = [f"and {len(faults) - FAULTS_SHOWN} more"] if len(faults) > FAULTS_SHOWN else []
    return separator.join([*faults[:FAULTS_SHOWN], *more])


def alike(faults: Iterable[tuple[str, str]], noun: str) -> list[str]:
    """Faults as (place, problem), each problem once, at its first place, with how many more places have it.

    ``noun`` names a place where it is counted: "row 0: no question (and 3 rows more like it)".
    """
    places: dict[str, list[str]] = {}
    for place, problem in faults:
        places.setdefault(problem, []).append(place)
    return [
        f"{first}: {problem}" + (f" (and {counted(len(more), noun)} more like it)" if more else "")
        for problem, (first, *more) in places.items()
    ]


class TrinityError(Exception):
    """Something a user can act on; its message is shown as it is, without a traceback."""


class CatalogError(TrinityError):
    """The catalog is not valid; the message lists every fault with its file and path."""


class SelectionError(TrinityError):
    """A selection of assets cannot be read, or is empty."""


class ArtifactError(TrinityError):
    """An artifact is missing, damaged or of another kind or spec than the reader expects."""


class DistributionError(TrinityError):
    """An installed Python distribution is missing, or does not hold a file."""


class TaskSourceError(TrinityError):
    """A benchmark's source cannot be read or holds rows that are not tasks."""


class BackboneError(TrinityError):
    """A backbone's weights cannot be found or loaded, or a prompt cannot be turned into a feature."""


class ProviderError(TrinityError):
    """A provider cannot be reached at all from here: what serves or calls it is missing or does not start."""


class MissingKeyError(ProviderError):
    """A provider's key variable is not set."""


class BudgetError(TrinityError):
    """A budget is no amount, or cannot be kept, because nobody knows what a call may cost."""


class LiveCheckError(TrinityError):
    """The report of a live check cannot be written."""


class IncompleteCellError(TrinityError):
    """A cell still has failures: its answers are kept, and a re-run asks only what is missing."""


class LedgerError(TrinityError):
    """The ledger cannot be opened, read or written."""


class LedgerFileError(TrinityError):
    """A file of answers or calls cannot be read or written, or holds rows that are none."""


class GraderError(TrinityError):
    """A completion could not be graded for a reason that is not the completion's fault; never a score."""


class SandboxError(GraderError):
    """Untrusted code cannot be run here: no sandbox holds on this machine, or the one chosen does not start."""


class CompletionsError(TrinityError):
    """A file of completions holds rows that are none, or of tasks that the benchmark does not have."""


class RecordedError(TrinityError):
    """Recorded outcomes cannot be read, belong to no task or are none; or a recorded worker was to be asked."""


class TrainingError(TrinityError):
    """A router table cannot be built, or a trainer cannot learn from it."""


class CheckpointError(TrinityError):
    """A checkpoint is damaged, incomplete, or made for another feature spec."""
