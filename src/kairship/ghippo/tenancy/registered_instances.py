"""The registered instances, which roles can be bound on. Functions of a connection."""

from collections import defaultdict
from typing import Any

import sqlalchemy as sa

from kairship.ghippo.database.schema import resources, workspace_resources, workspaces
from kairship.ghippo.tenancy import bindings, effective


def register(connection: sa.Connection, *, name: str, uid: str, at: int) -> None:
    """Registers an instance, any number of times. A recreated instance of the same name starts without any rights."""
    known = connection.execute(sa.select(resources.c.uid).where(resources.c.name == name)).scalar()
    if known == uid:
        return
    if known is not None:
        unregister(connection, uid=known, at=at)
    connection.execute(sa.insert(resources).values(name=name, uid=uid))


def unregister(connection: sa.Connection, *, uid: str, at: int) -> None:
    """Ends all rights on an instance and takes it out of its workspaces."""
    query = sa.select(workspace_resources.c.workspace_id).where(workspace_resources.c.instance_uid == uid)
    concerned = set(connection.execute(query).scalars())
    connection.execute(sa.delete(workspace_resources).where(workspace_resources.c.instance_uid == uid))
    bindings.remove_on_target(connection, "Resource", uid, at=at)
    connection.execute(sa.delete(resources).where(resources.c.uid == uid))
    effective.refresh_workspaces(connection, concerned, at=at)


def unregister_by_name(connection: sa.Connection, *, name: str, at: int) -> None:
    uid = connection.execute(sa.select(resources.c.uid).where(resources.c.name == name)).scalar()
    if uid is not None:
        unregister(connection, uid=uid, at=at)


def names(connection: sa.Connection) -> list[str]:
    return list(connection.execute(sa.select(resources.c.name).order_by(resources.c.name)).scalars())


def held_namespaces(connection: sa.Connection, *, uid: str | None = None) -> dict[str, tuple[str, ...]]:
    """The namespaces that workspaces hold, in order, by the UID of their instance; of all instances or of one."""
    held = workspace_resources.c
    query = sa.select(held.instance_uid, held.namespace).where(held.namespace != "")
    if uid is not None:
        query = query.where(held.instance_uid == uid)
    found: defaultdict[str, list[str]] = defaultdict(list)
    for row in connection.execute(query.order_by(held.instance_uid, held.namespace)):
        found[row.instance_uid].append(row.namespace)
    return {instance: tuple(namespaces) for instance, namespaces in found.items()}


def workspace_of(connection: sa.Connection, *, uid: str) -> sa.Row[Any] | None:
    """The workspace that holds an instance as a whole."""
    query = sa.select(workspaces.c.id, workspaces.c.name).join(
        workspace_resources, workspace_resources.c.workspace_id == workspaces.c.id
    )
    whole = sa.and_(workspace_resources.c.instance_uid == uid, workspace_resources.c.namespace == "")
    return connection.execute(query.where(whole)).first()
