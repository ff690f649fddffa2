"""The registered clusters of container management, which workspaces can hold. Functions of a connection."""

from typing import Any

import sqlalchemy as sa

from kairship.ghippo.database.schema import clusters, workspace_clusters, workspaces
from kairship.ghippo.tenancy import effective


def register(connection: sa.Connection, *, name: str, uid: str, at: int) -> None:
    """Registers a cluster, any number of times. A recreated cluster of the same name is in no workspace."""
    known = connection.execute(sa.select(clusters.c.uid).where(clusters.c.name == name)).scalar()
    if known == uid:
        return
    unregister(connection, name=name, at=at)
    connection.execute(sa.insert(clusters).values(name=name, uid=uid))


def unregister(connection: sa.Connection, *, name: str, at: int) -> None:
    """Takes a cluster out of its workspace, and so ends all rights on it."""
    uid = sa.select(clusters.c.uid).where(clusters.c.name == name).scalar_subquery()
    query = sa.select(workspace_clusters.c.workspace_id).where(workspace_clusters.c.cluster_uid == uid)
    concerned = set(connection.execute(query).scalars())
    connection.execute(sa.delete(workspace_clusters).where(workspace_clusters.c.cluster_uid == uid))
    connection.execute(sa.delete(clusters).where(clusters.c.name == name))
    effective.refresh_workspaces(connection, concerned, at=at)


def names(connection: sa.Connection) -> list[str]:
    return list(connection.execute(sa.select(clusters.c.name).order_by(clusters.c.name)).scalars())


def workspace_of(connection: sa.Connection, *, uid: str) -> sa.Row[Any] | None:
    """The workspace that holds a cluster."""
    query = sa.select(workspaces.c.id, workspaces.c.name).join(
        workspace_clusters, workspace_clusters.c.workspace_id == workspaces.c.id
    )
    return connection.execute(query.where(workspace_clusters.c.cluster_uid == uid)).first()
