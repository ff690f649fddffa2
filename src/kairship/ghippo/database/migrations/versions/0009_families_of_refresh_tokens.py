"""Families of refresh tokens, and the networks that devices ask from."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.add_column("sessions", sa.Column("family_hash", sa.LargeBinary(32), nullable=True))
    op.create_index(op.f("ix_sessions_family_hash"), "sessions", ["family_hash"], unique=False)
    op.add_column("device_logins", sa.Column("network", sa.String(64), nullable=False, server_default=""))
    op.create_index(op.f("ix_device_logins_network"), "device_logins", ["network"], unique=False)
