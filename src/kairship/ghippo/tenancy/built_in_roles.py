"""Brings the bindings of built-in roles to the permissions that these roles have in this release.

A release may give a built-in role another permission, or take one away. Bindings from before would keep the old ones
until somebody changes them, so the leader computes them all once. Nothing is delivered of what has not changed.
"""

import functools

import sqlalchemy as sa
import structlog

from kairship.access.catalogue import roles as built_in
from kairship.ghippo.database import Database
from kairship.ghippo.database.schema import bindings
from kairship.ghippo.errors import GhippoError
from kairship.ghippo.identifiers import Now, now
from kairship.ghippo.tenancy import effective
from kairship.reconcile import Clock

_BATCH = 200
_RETRY = 5.0

log = structlog.get_logger(__name__)


async def refresh_built_in_roles(database: Database, *, clock: Clock, wall: Now = now) -> None:
    """Returns when every binding is up to date."""
    while True:
        try:
            found = await database.read(_with_built_in_roles)
            # In several transactions, so that nobody waits long for the database.
            for start in range(0, len(found), _BATCH):
                batch = found[start : start + _BATCH]
                await database.write(functools.partial(effective.refresh, identifiers=batch, at=wall()))
        except GhippoError as error:
            log.warning("the bindings of built-in roles cannot be refreshed; this is repeated", error=str(error))
            await clock.sleep(_RETRY)
        else:
            return


def _with_built_in_roles(connection: sa.Connection) -> list[str]:
    query = sa.select(bindings.c.id).where(bindings.c.role_id.in_(built_in.BY_ID)).order_by(bindings.c.id)
    return list(connection.execute(query).scalars())
