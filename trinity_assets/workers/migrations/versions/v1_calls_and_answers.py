"""Version 1: calls and answers."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "1"
down_revision = None


def _asked() -> list[sa.Column[Any]]:
    return [
        sa.Column("run", sa.String, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("provider", sa.String, nullable=False),
        sa.Column("worker", sa.String, nullable=False),
        sa.Column("benchmark", sa.String, nullable=False),
        sa.Column("task_id", sa.String, nullable=False),
        sa.Column("sample", sa.Integer, nullable=False),
        sa.Column("epoch", sa.Integer, nullable=False),
        sa.Column("status", sa.String, nullable=False),
        sa.Column("finish_reason", sa.String),
        sa.Column("model_returned", sa.String),
        # SQLite's integers have any width; version 1 was never on another database.
        sa.Column("input_tokens", sa.BigInteger().with_variant(sa.Integer, "sqlite")),
        sa.Column("output_tokens", sa.BigInteger().with_variant(sa.Integer, "sqlite")),
        sa.Column("cost_usd", sa.Float),
        sa.Column("cost_source", sa.String),
        sa.Column("latency_s", sa.Float),
    ]


def upgrade() -> None:
    """Create both."""
    op.create_table(
        "calls",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("request_digest", sa.String(64), nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        *_asked(),
        sa.Column("error_class", sa.String),
        sa.Column("error", sa.String),
    )
    op.create_index("ix_calls_request_digest", "calls", ["request_digest"])
    op.create_table(
        "answers",
        sa.Column("request_digest", sa.String(64), primary_key=True),
        *_asked(),
        sa.Column("text", sa.String),
    )
