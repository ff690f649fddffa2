"""The owner of a webhook: it is sent what this user may read."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.add_column("webhooks", sa.Column("owner", sa.String(128), nullable=False, server_default=""))
