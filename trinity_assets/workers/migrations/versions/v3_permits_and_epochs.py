"""Version 3: permits, scopes and epochs; the fingerprint of what answered; what a call could cost at most."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "3"
down_revision = "2"


def upgrade() -> None:
    """Add them; no row changes."""
    count = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    for table in ("calls", "answers"):
        op.add_column(table, sa.Column("fingerprint", sa.String))
    op.add_column("calls", sa.Column("reserved_usd", sa.Float))
    op.create_index("ix_calls_run", "calls", ["run"])
    op.create_table(
        "permits",
        sa.Column("permit", sa.String, primary_key=True),
        sa.Column("claimant", sa.String, nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("process_started", sa.Float, nullable=False),
        sa.Column("place", sa.String),
        sa.Column("provider_scope", sa.String, nullable=False),
        sa.Column("worker_scope", sa.String, nullable=False),
        sa.Column("started_at", sa.Float, nullable=False),
        sa.Column("expires_at", sa.Float, nullable=False),
        sa.Column("ended_at", sa.Float),
        sa.Column("tokens", count, nullable=False),
        sa.Column("reserved_usd", sa.Float),
        sa.Column("request_digest", sa.String(64), nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("run", sa.String, nullable=False),
        sa.Column("provider", sa.String, nullable=False),
        sa.Column("worker", sa.String, nullable=False),
        sa.Column("benchmark", sa.String, nullable=False),
        sa.Column("task_id", sa.String, nullable=False),
        sa.Column("sample", sa.Integer, nullable=False),
        sa.Column("epoch", sa.Integer, nullable=False),
    )
    op.create_index("ix_permits_claimant", "permits", ["claimant"])
    op.create_index("ix_permits_provider_scope", "permits", ["provider_scope"])
    op.create_table(
        "scopes",
        sa.Column("scope", sa.String, primary_key=True),
        sa.Column("next_at", sa.Float, nullable=False),
        sa.Column("touched_at", sa.Float, nullable=False),
        sa.Column("level", sa.Float),
        sa.Column("halved_at", sa.Float, nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("opened_at", sa.Float),
        sa.Column("probes_failed", sa.Integer, nullable=False),
        sa.Column("last_error", sa.String),
    )
    op.create_table(
        "epochs",
        sa.Column("worker", sa.String, primary_key=True),
        sa.Column("benchmark", sa.String, primary_key=True),
        sa.Column("epoch", sa.Integer, primary_key=True),
        sa.Column("opened_at", sa.Float, nullable=False),
        sa.Column("opened_by", sa.String, nullable=False),
        sa.Column("completed_at", sa.Float),
    )
