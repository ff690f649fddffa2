"""Who vouches for a user: the issuer, and whether its settings were confirmed since they changed."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.add_column("users", sa.Column("issuer", sa.Text(), nullable=False, server_default=""))
    op.add_column("users", sa.Column("suspended", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column(
        "identity_providers", sa.Column("unconfirmed", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    providers = sa.table("identity_providers", sa.column("name"), sa.column("issuer"))
    users, groups = (sa.table(name, sa.column("provider"), sa.column("issuer")) for name in ("users", "groups"))
    known = sa.select(providers.c.name)
    for table in (users, groups):
        # Users and groups of a provider that was deleted must not become those of a later one of the same name.
        retired = sa.func.substr(table.c.provider, 1, 40).concat(":deleted")
        gone = sa.and_(table.c.provider != "", table.c.provider.not_in(known))
        op.execute(sa.update(table).where(gone).values(provider=retired))
    issuer = sa.select(providers.c.issuer).where(providers.c.name == users.c.provider).scalar_subquery()
    op.execute(sa.update(users).where(users.c.provider.in_(known)).values(issuer=issuer))
