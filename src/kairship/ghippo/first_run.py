"""The first user of a new plane: `admin`, with a password that is shown once and must be changed."""

import secrets

import sqlalchemy as sa

from kairship.access import Role
from kairship.ghippo import bindings, users
from kairship.ghippo.database import Database
from kairship.ghippo.identifiers import Now, now
from kairship.ghippo.passwords import Passwords


async def create_admin(database: Database, passwords: Passwords, *, clock: Now = now) -> str | None:
    """The password; None if there are users already. Of replicas that start together one is told."""
    if await database.read(users.exist):
        return None
    password = "-".join(secrets.token_hex(3) for _ in range(4))
    hash_ = await passwords.hash(password)

    def work(connection: sa.Connection) -> bool:
        if users.exist(connection):
            return False
        at = clock()
        user = users.create(connection, name=users.ADMIN, display_name="Administrator", password_hash=hash_, at=at)
        bindings.create(
            connection,
            subject_kind="User",
            subject_id=user,
            role=Role.PLATFORM_ADMIN.id,
            target=bindings.PLATFORM,
            at=at,
        )
        return True

    return password if await database.write(work) else None
