"""Bindings that a receiver cannot store as they are."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "refused_bindings",
        sa.Column("webhook", sa.String(length=63), nullable=False),
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["webhook"], ["webhooks.name"], name=op.f("fk_refused_bindings_webhook"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("webhook", "name", name=op.f("pk_refused_bindings")),
        comment="Bindings that a receiver cannot store as they are. They are sent again when they change.",
    )
