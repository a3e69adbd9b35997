"""Version 2: claims, the version of the price that a call's cost was computed with, indexes for the commands."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "2"
down_revision = "1"


def upgrade() -> None:
    """Add them; no row changes."""
    op.add_column("calls", sa.Column("price_version", sa.String))
    op.create_index("ix_calls_worker_benchmark", "calls", ["worker", "benchmark"])
    op.create_index("ix_answers_worker_benchmark", "answers", ["worker", "benchmark"])
    op.create_table(
        "claims",
        sa.Column("request_digest", sa.String(64), primary_key=True),
        sa.Column("claimant", sa.String, nullable=False),
        sa.Column("host", sa.String, nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("process_started", sa.Float, nullable=False),
        sa.Column("place", sa.String),
        sa.Column("expires_at", sa.Float, nullable=False),
    )
    op.create_index("ix_claims_claimant", "claims", ["claimant"])
