"""Workspaces, the folders that they are in, and the resources that they hold. Functions of a connection."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from kairship.ghippo.database.schema import (
    clusters,
    folders,
    resources,
    workspace_clusters,
    workspace_resources,
    workspaces,
)
from kairship.ghippo.errors import AlreadyExists, FailedPrecondition, NotFound
from kairship.ghippo.identifiers import new_id
from kairship.ghippo.listing import Page, select_page
from kairship.ghippo.tenancy import bindings, effective


def create(connection: sa.Connection, *, name: str, alias: str, folder: int | None, at: int) -> int:
    _check_folder(connection, folder)
    try:
        with connection.begin_nested():
            made = connection.execute(
                sa.insert(workspaces).values(name=name, alias=alias, folder_id=folder, created_at=at)
            )
    except IntegrityError as error:
        raise AlreadyExists(f"there is a workspace {name} already; choose another name", field="name") from error
    [identifier] = made.inserted_primary_key or [0]
    effective.refresh_workspaces(connection, [identifier], at=at)
    return int(identifier)


def get(connection: sa.Connection, identifier: int) -> sa.Row[Any]:
    row = connection.execute(sa.select(workspaces).where(workspaces.c.id == identifier)).first()
    if row is None:
        raise NotFound("there is no such workspace")
    return row


def find(connection: sa.Connection, page: Page, *, only: frozenset[int] | None) -> tuple[Sequence[sa.Row[Any]], int]:
    """A page of workspaces; with `only`, of those that the caller may see."""
    query = sa.select(workspaces).order_by(workspaces.c.name)
    if only is not None:
        query = query.where(workspaces.c.id.in_(only))
    return select_page(connection, query, page, names=[workspaces.c.name, workspaces.c.alias])


def update(connection: sa.Connection, identifier: int, *, alias: str) -> None:
    get(connection, identifier)
    connection.execute(sa.update(workspaces).where(workspaces.c.id == identifier).values(alias=alias))


def move(connection: sa.Connection, identifier: int, *, folder: int | None, at: int) -> None:
    """Moves a workspace. The roles on its old ancestors end for it, and those on the new ones begin."""
    workspace = get(connection, identifier)
    _check_folder(connection, folder)
    before = effective.ancestors(connection, workspace.folder_id)
    connection.execute(sa.update(workspaces).where(workspaces.c.id == identifier).values(folder_id=folder))
    effective.refresh_targets(connection, [("Folder", str(each)) for each in before], at=at)
    effective.refresh_workspaces(connection, [identifier], at=at)


def delete(connection: sa.Connection, identifier: int, *, at: int) -> None:
    workspace = get(connection, identifier)
    if held(connection, identifier) or held_clusters(connection, identifier):
        raise FailedPrecondition("the workspace still holds instances, namespaces or clusters; take them out first")
    bindings.remove_on_target(connection, "Workspace", str(identifier), at=at)
    connection.execute(sa.delete(workspaces).where(workspaces.c.id == identifier))
    above = effective.ancestors(connection, workspace.folder_id)
    effective.refresh_targets(connection, [("Folder", str(each)) for each in above], at=at)


def held(connection: sa.Connection, identifier: int) -> Sequence[sa.Row[Any]]:
    """The instances and namespaces that a workspace holds, with the names of the instances."""
    query = (
        sa.select(workspace_resources, resources.c.name.label("instance"))
        .join(resources, resources.c.uid == workspace_resources.c.instance_uid)
        .where(workspace_resources.c.workspace_id == identifier)
        .order_by(resources.c.name, workspace_resources.c.namespace)
    )
    return connection.execute(query).all()


def held_clusters(connection: sa.Connection, identifier: int) -> Sequence[sa.Row[Any]]:
    """The clusters that a workspace holds, with their names."""
    query = (
        sa.select(workspace_clusters, clusters.c.name.label("cluster"))
        .join(clusters, clusters.c.uid == workspace_clusters.c.cluster_uid)
        .where(workspace_clusters.c.workspace_id == identifier)
        .order_by(clusters.c.name)
    )
    return connection.execute(query).all()


def add(connection: sa.Connection, identifier: int, *, instance: str, namespace: str, at: int) -> str:
    """Adds an instance or a namespace. They may be in different workspaces, but each of them in only one."""
    get(connection, identifier)
    target = bindings.target_of_instance(connection, instance, namespace)
    return _add(connection, workspace_resources, identifier, at=at, instance_uid=target.id, namespace=namespace)


def add_cluster(connection: sa.Connection, identifier: int, *, cluster: str, at: int) -> str:
    """Adds a cluster, which is in only one workspace."""
    get(connection, identifier)
    uid = connection.execute(sa.select(clusters.c.uid).where(clusters.c.name == cluster)).scalar()
    if uid is None:
        raise NotFound(f"there is no registered cluster {cluster}")
    return _add(connection, workspace_clusters, identifier, at=at, cluster_uid=uid)


def remove(connection: sa.Connection, identifier: int, resource: str, *, at: int) -> None:
    """Removes an instance, a namespace or a cluster, by the identifier of its assignment."""
    tables = (workspace_resources, workspace_clusters)
    gone = [
        connection.execute(sa.delete(table).where(table.c.id == resource, table.c.workspace_id == identifier)).rowcount
        for table in tables
    ]
    if not any(gone):
        raise NotFound("the workspace does not hold this")
    effective.refresh_workspaces(connection, [identifier], at=at)


def _add(connection: sa.Connection, table: sa.Table, identifier: int, *, at: int, **held: str) -> str:
    made = new_id("r")
    try:
        with connection.begin_nested():
            connection.execute(sa.insert(table).values(id=made, workspace_id=identifier, **held))
    except IntegrityError as error:
        raise AlreadyExists("a workspace holds this already; take it out of that workspace first") from error
    effective.refresh_workspaces(connection, [identifier], at=at)
    return made


def _check_folder(connection: sa.Connection, folder: int | None) -> None:
    if folder is not None and connection.execute(sa.select(folders.c.id).where(folders.c.id == folder)).first() is None:
        raise NotFound(f"there is no folder {folder}")
