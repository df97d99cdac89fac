"""${message}"""

from alembic import op
from sqlalchemy import BigInteger, Boolean, Column, Double, Integer, Text

from headrace.streams.view.tables import Key

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}


def upgrade() -> None:
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    ${downgrades if downgrades else "pass"}
