"""The instances that are registered, so that roles can be bound to them. Functions of a connection."""

import sqlalchemy as sa

from kairship.ghippo import bindings, effective
from kairship.ghippo.database.schema import resources, workspace_resources


def register(connection: sa.Connection, *, name: str, uid: str, at: int) -> None:
    """Once or many times. One that was made anew under the same name starts without anybody's rights."""
    known = connection.execute(sa.select(resources.c.uid).where(resources.c.name == name)).scalar()
    if known == uid:
        return
    if known is not None:
        unregister(connection, uid=known, at=at)
    connection.execute(sa.insert(resources).values(name=name, uid=uid))


def unregister(connection: sa.Connection, *, uid: str, at: int) -> None:
    """All rights on it end, and no workspace holds it any more."""
    query = sa.select(workspace_resources.c.workspace_id).where(workspace_resources.c.instance_uid == uid)
    concerned = set(connection.execute(query).scalars())
    connection.execute(sa.delete(workspace_resources).where(workspace_resources.c.instance_uid == uid))
    bindings.remove_on_target(connection, "Resource", uid, at=at)
    connection.execute(sa.delete(resources).where(resources.c.uid == uid))
    effective.refresh_workspaces(connection, concerned, at=at)
