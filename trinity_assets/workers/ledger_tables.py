"""The ledger's tables as the present schema has them. ``migrations`` says how a database gets there."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

METADATA = sa.MetaData()

YEAR_10000 = 253_402_300_800.0
"""Where the calendar's dates end, in seconds since 1970: no time of a row is as late."""

_COUNT = sa.BigInteger().with_variant(sa.Integer, "sqlite")
"""A number of tokens, below 2^40; SQLite's integers have any width."""


class Words(sa.types.TypeDecorator[str]):
    """Text that comes back as it was, also with NUL characters, which PostgreSQL does not keep.

    There, and only there, NUL is written as DLE ``@`` and DLE (U+0010, "data link escape") as DLE DLE.
    """

    impl = sa.String
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> str | None:
        """What is kept."""
        if value is not None and dialect.name == "postgresql" and ("\0" in value or "\x10" in value):
            return value.replace("\x10", "\x10\x10").replace("\0", "\x10@")
        return value

    def process_result_value(self, value: str | None, dialect: sa.Dialect) -> str | None:
        """What was given."""
        if value is not None and dialect.name == "postgresql" and "\x10" in value:
            return "\x10".join(part.replace("\x10@", "\0") for part in value.split("\x10\x10"))
        return value


def _question() -> list[sa.Column[Any]]:
    """The columns that say who is asked what."""
    return [
        sa.Column("provider", Words, nullable=False),
        sa.Column("worker", Words, nullable=False),
        sa.Column("benchmark", Words, nullable=False),
        sa.Column("task_id", Words, nullable=False),
        sa.Column("sample", sa.Integer, nullable=False),
        sa.Column("epoch", sa.Integer, nullable=False),
    ]


def _asked() -> list[sa.Column[Any]]:
    """The columns of both tables that say who was asked what, and what came back."""
    return [
        sa.Column("run", Words, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        *_question(),
        sa.Column("status", Words, nullable=False),
        sa.Column("finish_reason", Words),
        sa.Column("model_returned", Words),
        sa.Column("fingerprint", Words),
        sa.Column("input_tokens", _COUNT),
        sa.Column("output_tokens", _COUNT),
        sa.Column("cost_usd", sa.Float),
        sa.Column("cost_source", Words),
        sa.Column("latency_s", sa.Float),
    ]


PROBE = 0
"""The attempt number of a call that asks no task, but whether its provider answers at all."""

CALLS = sa.Table(
    "calls",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("request_digest", sa.String(64), nullable=False, index=True),
    sa.Column("attempt", sa.Integer, nullable=False),
    *_asked(),
    sa.Column("error_class", Words),
    sa.Column("error", Words),
    sa.Column("price_version", Words),
    sa.Column("reserved_usd", sa.Float),
    sa.Index("ix_calls_worker_benchmark", "worker", "benchmark"),
    sa.Index("ix_calls_run", "run"),
)
"""``reserved_usd`` is what the call could have cost at most: what a budget counts where the cost is unknown."""

ANSWERS = sa.Table(
    "answers",
    METADATA,
    sa.Column("request_digest", sa.String(64), primary_key=True),
    *_asked(),
    sa.Column("text", Words),
    sa.Index("ix_answers_worker_benchmark", "worker", "benchmark"),
)
CLAIMS = sa.Table(
    "claims",
    METADATA,
    sa.Column("request_digest", sa.String(64), primary_key=True),
    sa.Column("claimant", sa.String, nullable=False, index=True),
    sa.Column("host", sa.String, nullable=False),
    sa.Column("pid", sa.Integer, nullable=False),
    sa.Column("process_started", sa.Float, nullable=False),
    sa.Column("place", sa.String),
    sa.Column("expires_at", sa.Float, nullable=False),
)
PERMITS = sa.Table(
    "permits",
    METADATA,
    sa.Column("permit", sa.String, primary_key=True),
    sa.Column("claimant", sa.String, nullable=False, index=True),
    sa.Column("pid", sa.Integer, nullable=False),
    sa.Column("process_started", sa.Float, nullable=False),
    sa.Column("place", sa.String),
    sa.Column("provider_scope", sa.String, nullable=False, index=True),
    sa.Column("worker_scope", sa.String, nullable=False),
    sa.Column("started_at", sa.Float, nullable=False),
    sa.Column("expires_at", sa.Float, nullable=False),
    sa.Column("ended_at", sa.Float),
    sa.Column("tokens", _COUNT, nullable=False),
    sa.Column("reserved_usd", sa.Float),
    sa.Column("request_digest", sa.String(64), nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("run", Words, nullable=False),
    *_question(),
)
"""Calls under way, and where tokens per minute are limited those of the last minute: what all processes count.

``ended_at`` null is a call under way. One whose process died becomes a row of ``calls``: it may have cost something.
"""

SCOPES = sa.Table(
    "scopes",
    METADATA,
    sa.Column("scope", sa.String, primary_key=True),
    sa.Column("next_at", sa.Float, nullable=False),
    sa.Column("touched_at", sa.Float, nullable=False),
    sa.Column("level", sa.Float),
    sa.Column("halved_at", sa.Float, nullable=False),
    sa.Column("failures", sa.Integer, nullable=False),
    sa.Column("opened_at", sa.Float),
    sa.Column("probes_failed", sa.Integer, nullable=False),
    sa.Column("last_error", Words),
)
"""What is known of a provider or a worker that is being asked.

When its next call may start, how many may be under way, how many failed in a row. Times are seconds since 1970.
"""

EPOCHS = sa.Table(
    "epochs",
    METADATA,
    sa.Column("worker", Words, primary_key=True),
    sa.Column("benchmark", Words, primary_key=True),
    sa.Column("epoch", sa.Integer, primary_key=True),
    sa.Column("opened_at", sa.Float, nullable=False),
    sa.Column("opened_by", Words, nullable=False),
    sa.Column("completed_at", sa.Float),
)
"""Generations of the answers of a cell or a sentinel: who opened and resumed one, and when its last answer settled."""
