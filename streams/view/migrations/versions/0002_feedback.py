"""Feedback names spans by response, trace and session."""

from alembic import op
from sqlalchemy import text

revision = "0002"
down_revision = "0001"

PARTIAL = ("response_id", "session_id")


def upgrade() -> None:
    op.create_index("spans_by_trace", "spans", ["trace_id"])
    for column in PARTIAL:
        where = text(f"{column} IS NOT NULL")
        name = f"spans_by_{column.removesuffix('_id')}"
        op.create_index(name, "spans", [column], sqlite_where=where, postgresql_where=where)


def downgrade() -> None:
    for name in ("spans_by_trace", "spans_by_response", "spans_by_session"):
        op.drop_index(name, "spans")
