"""Events of other processes: which of them are in the chain already."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "audit_received",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_received")),
        comment="Events of other processes that are in the chain already: they may be sent again for a while.",
    )
    op.create_index(op.f("ix_audit_received_at"), "audit_received", ["at"], unique=False)
