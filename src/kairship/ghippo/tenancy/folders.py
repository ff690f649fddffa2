"""Folders: the tree of workspaces, along which roles are inherited. Functions of a connection."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from kairship.ghippo.database.schema import folders, workspaces
from kairship.ghippo.errors import FailedPrecondition, NotFound
from kairship.ghippo.listing import Page, select_page
from kairship.ghippo.tenancy import bindings, effective

MAX_DEPTH = 16


def create(connection: sa.Connection, *, name: str, parent: int | None) -> int:
    _check_parent(connection, parent)
    made = connection.execute(sa.insert(folders).values(name=name, parent_id=parent))
    [identifier] = made.inserted_primary_key or [0]
    return int(identifier)


def get(connection: sa.Connection, identifier: int) -> sa.Row[Any]:
    row = connection.execute(sa.select(folders).where(folders.c.id == identifier)).first()
    if row is None:
        raise NotFound("there is no such folder")
    return row


def find(connection: sa.Connection, page: Page) -> tuple[Sequence[sa.Row[Any]], int]:
    query = sa.select(folders).order_by(folders.c.name, folders.c.id)
    return select_page(connection, query, page, names=[folders.c.name])


def update(connection: sa.Connection, identifier: int, *, name: str, parent: int | None, at: int) -> None:
    """Renames or moves a folder. Below it, the roles of the old ancestors end and those of the new ones begin."""
    folder = get(connection, identifier)
    if identifier in effective.ancestors(connection, parent):
        raise FailedPrecondition("a folder cannot be moved into itself or into a folder below it")
    if parent != folder.parent_id:
        _check_parent(connection, parent, height=_height(connection, identifier))
    before = effective.ancestors(connection, identifier)
    connection.execute(sa.update(folders).where(folders.c.id == identifier).values(name=name, parent_id=parent))
    concerned = {*before, *effective.ancestors(connection, identifier)}
    effective.refresh_targets(connection, [("Folder", str(each)) for each in sorted(concerned)], at=at)


def delete(connection: sa.Connection, identifier: int, *, at: int) -> None:
    get(connection, identifier)
    inside = sa.union_all(
        sa.select(folders.c.id).where(folders.c.parent_id == identifier),
        sa.select(workspaces.c.id).where(workspaces.c.folder_id == identifier),
    )
    if connection.execute(inside.limit(1)).first() is not None:
        raise FailedPrecondition("there is something in the folder; move or delete its folders and workspaces first")
    bindings.remove_on_target(connection, "Folder", str(identifier), at=at)
    connection.execute(sa.delete(folders).where(folders.c.id == identifier))


def _height(connection: sa.Connection, identifier: int) -> int:
    """The number of levels from a folder down."""
    level, height = [identifier], 0
    while level:
        height += 1
        level = list(connection.execute(sa.select(folders.c.id).where(folders.c.parent_id.in_(level))).scalars())
    return height


def _check_parent(connection: sa.Connection, parent: int | None, *, height: int = 1) -> None:
    if parent is None:
        return
    get(connection, parent)
    if len(effective.ancestors(connection, parent)) + height > MAX_DEPTH:
        raise FailedPrecondition(f"folders are nested at most {MAX_DEPTH} deep; choose a parent higher up")
