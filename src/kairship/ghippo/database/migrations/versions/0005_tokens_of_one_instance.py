"""Access tokens that are good for one instance, and the token by which one was asked for."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column("access_tokens", sa.Column("instance", sa.String(63), nullable=False, server_default=""))
    op.add_column("access_tokens", sa.Column("asked_with", sa.String(128), nullable=False, server_default=""))
