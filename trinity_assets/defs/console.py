"""What a person reads while a run goes on: one line per step that starts, ends or fails, and the steps' own lines."""

from __future__ import annotations

import logging
import sys
import time

import dagster as dg

_SHOWN_EVENTS = {
    dg.DagsterEventType.STEP_START: "started",
    dg.DagsterEventType.STEP_SUCCESS: "done",
    dg.DagsterEventType.STEP_FAILURE: "FAILED",
    dg.DagsterEventType.STEP_SKIPPED: "skipped, because a step before it failed",
}


class StepFormatter(logging.Formatter):
    """``12:03:04  answers/smollm2_direct/starter  120/240 answers, 3.1/s, ETA 39s``; events nobody reads give ""."""

    def format(self, record: logging.LogRecord) -> str:
        """One line for ``record``, or nothing."""
        meta = getattr(record, "dagster_meta", None) or {}
        event: dg.DagsterEvent | None = meta.get("dagster_event")
        step = step_name(meta.get("step_key"))
        if event is None and record.levelno < logging.INFO:
            return ""
        if event is None:
            text = meta.get("orig_message") or record.getMessage()
            if text.startswith("Dependencies for step"):
                text = _SHOWN_EVENTS[dg.DagsterEventType.STEP_SKIPPED]
        elif event.event_type in _SHOWN_EVENTS:
            text = _SHOWN_EVENTS[event.event_type]
            if event.event_type is dg.DagsterEventType.STEP_FAILURE:
                text = f"{text}: {failure_text(event)}"
        else:
            return ""
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        return "  ".join(part for part in (clock, step, text) if part)


class _NonEmptyHandler(logging.StreamHandler):
    def emit(self, record: logging.LogRecord) -> None:
        if self.format(record):
            super().emit(record)


def step_name(step_key: str | None) -> str:
    """A step's key as the name of its asset; "" for none."""
    return (step_key or "").replace("__", "/")


def failure_text(event: dg.DagsterEvent) -> str:
    """The message that a user can act on, else the error's own first line."""
    data = event.step_failure_data
    if data.user_failure_data and data.user_failure_data.description:
        return data.user_failure_data.description
    error = data.error
    cause = error.cause if error and error.cause else error
    return cause.message.strip() if cause else "no reason was recorded"


@dg.logger
def console(init_context: dg.InitLoggerContext) -> logging.Logger:
    """The logger that ``trinity-assets build`` runs with."""
    logger = logging.getLogger("trinity_assets_console")
    logger.setLevel(logging.DEBUG)  # Dagster logs the events of steps at that level
    logger.propagate = False
    if not logger.handlers:
        handler = _NonEmptyHandler(sys.stderr)
        handler.setFormatter(StepFormatter())
        logger.addHandler(handler)
    return logger
