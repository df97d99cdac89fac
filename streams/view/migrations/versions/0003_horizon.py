"""From when on the view has whole rollouts."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    horizon = op.create_table(
        "horizon",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("whole_since", sa.BigInteger),
    )
    op.bulk_insert(horizon, [{"id": 1, "whole_since": 0}])


def downgrade() -> None:
    op.drop_table("horizon")
