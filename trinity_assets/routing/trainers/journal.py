"""What a search was told, generation by generation, kept so that a killed one goes on where it was.

The state of an evolution strategy follows from its seed and the rewards it was told. Those are kept, as JSON, and told
again: the draws are repeated, which takes milliseconds, and no head is asked for twice. After each generation the
repeated mean is compared with the recorded one, bit for bit; a journal of other numbers (another processor, another
numpy) or one that cannot be read is begun anew.
"""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from trinity_assets.errors import ArtifactError
from trinity_assets.files import replaced_whole
from trinity_assets.routing.trainers.head import Start
from trinity_assets.spec import Sha256, Spec, canonical_json

logger = logging.getLogger(__name__)


class Told(Spec):
    """A generation: the reward of each candidate, and what the mean became and was validated with."""

    rewards: tuple[float, ...]
    validation: float | None
    mean_sha256: Sha256


class _Pages(Spec):
    """A journal as it lies on disk."""

    identity: Sha256
    generations: tuple[Told, ...]


class JournalDivergedError(Exception):
    """The journal was written by a search that drew other numbers than this one."""


class Journal:
    """The journal of the search that ``identity`` (64 hex digits) names, in ``start.directory`` if it gives one."""

    def __init__(self, trainer: str, identity: str, start: Start) -> None:
        self._identity = identity
        self._path = start.directory / f"{trainer}-{identity[:16]}.json" if start.directory else None
        self._save_every_s, self._clock = start.save_every_s, start.clock
        self._saved = start.clock()
        self._written = self._read()
        self._told: list[Told] = []
        if self._written and not start.quiet:
            logger.info("%s: going on after generation %d of an interrupted training", trainer, len(self._written))

    def recorded(self) -> Told | None:
        """The generation that is told next, if the journal has it."""
        return self._written[len(self._told)] if len(self._told) < len(self._written) else None

    def tell(self, rewards: np.ndarray, validation: float | None, mean: np.ndarray) -> None:
        """Note a generation, and save if it is time to.

        Raises:
            JournalDivergedError: the journal has this generation with another mean.
            ArtifactError: the journal cannot be written.
        """
        told = Told(
            rewards=tuple(rewards.tolist()),
            validation=validation,
            mean_sha256=hashlib.sha256(mean.tobytes()).hexdigest(),
        )
        before = self.recorded()
        if before is not None and before.mean_sha256 != told.mean_sha256:
            raise JournalDivergedError(f"generation {len(self._told) + 1}")
        self._told.append(told)
        if self._path and before is None and self._clock() - self._saved >= self._save_every_s:
            self._save(self._path)
            self._saved = self._clock()

    def begin_anew(self) -> None:
        """Forget everything that was told."""
        self._told, self._written = [], ()

    def remove(self) -> None:
        """Remove the journal of a search that has come to its end."""
        if self._path:
            self._path.unlink(missing_ok=True)

    def _read(self) -> tuple[Told, ...]:
        if not self._path or not self._path.exists():
            return ()
        try:
            pages = _Pages.model_validate_json(self._path.read_bytes())
        except (OSError, ValidationError) as error:
            logger.warning("the interrupted training in %s cannot be read and is begun anew: %s", self._path, error)
            return ()
        return pages.generations if pages.identity == self._identity else ()

    def _save(self, path: Path) -> None:
        pages = _Pages(identity=self._identity, generations=tuple(self._told))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with replaced_whole(path) as temporary:
                temporary.write_text(canonical_json(pages), encoding="utf-8")
        except OSError as error:
            raise ArtifactError(
                f"cannot keep the state of a training in {path.parent}: {error}; free space or fix the permissions and "
                "train again"
            ) from error
