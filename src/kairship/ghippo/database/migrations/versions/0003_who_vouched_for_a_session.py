"""The ID token by which an identity provider vouched for a session: it ends the session there too."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("sessions", sa.Column("sealed_id_token", sa.LargeBinary(), nullable=True))
