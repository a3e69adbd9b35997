"""Progress of long steps as log lines: done/total, rate, ETA and cost, every few seconds and at the end."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

INTERVAL_S = 5.0


def duration(seconds: float) -> str:
    """``seconds`` as a person reads them: ``8s``, ``3m 05s``, ``2h 10m``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02d}s"
    return f"{whole // 3600}h {whole % 3600 // 60:02d}m"


class Progress:
    """Counts finished units of a step and logs at most one line per interval.

    ``total`` is in units named by ``unit`` (plural). ``cost_usd`` accumulates; it is shown once any is known.
    """

    def __init__(
        self,
        logger: logging.Logger,
        label: str,
        total: int,
        unit: str,
        *,
        interval_s: float = INTERVAL_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._logger = logger
        self._label = label
        self._total = total
        self._unit = unit
        self._interval_s = interval_s
        self._clock = clock
        self._started = self._last = clock()
        self.done = 0
        self.cost_usd = 0.0

    def advance(self, units: int = 1, cost_usd: float | None = None) -> None:
        """Record ``units`` more as done and log if the interval has passed or everything is done."""
        self.done += units
        self.cost_usd += cost_usd or 0.0
        now = self._clock()
        if now - self._last >= self._interval_s or self.done == self._total:
            self._last = now
            self._logger.info(self.line())

    def line(self) -> str:
        """The current state as one line."""
        elapsed = max(self._clock() - self._started, 1e-9)
        rate = self.done / elapsed
        parts = [f"{self._label}: {self.done}/{self._total} {self._unit}", f"{rate:.1f}/s"]
        if self.done < self._total:
            parts.append(f"ETA {duration((self._total - self.done) / rate)}" if self.done else "ETA unknown")
        else:
            parts.append(f"took {duration(elapsed)}")
        if self.cost_usd:
            parts.append(f"${self.cost_usd:.4f}")
        return ", ".join(parts)
