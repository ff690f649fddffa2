"""Groups of users. Functions of a connection, to be run in a transaction."""

from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from kairship.ghippo.database import schema
from kairship.ghippo.database.schema import group_members, groups
from kairship.ghippo.errors import AlreadyExists, FailedPrecondition, NotFound
from kairship.ghippo.identifiers import new_id
from kairship.ghippo.identity import directory, users
from kairship.ghippo.listing import Page, select_page
from kairship.ghippo.tenancy import bindings, effective

_SIZE = (
    sa.select(sa.func.count()).where(group_members.c.group_id == groups.c.id).correlate(groups).scalar_subquery()
).label("size")


def create(connection: sa.Connection, *, name: str, at: int, description: str = "", provider: str = "") -> str:
    identifier = new_id("g")
    values = {"id": identifier, "name": name, "description": description, "provider": provider, "created_at": at}
    try:
        with connection.begin_nested():
            connection.execute(sa.insert(groups).values(values))
    except IntegrityError as error:
        raise AlreadyExists(f"there is a group {name} already; choose another name", field="name") from error
    return identifier


def get(connection: sa.Connection, identifier: str) -> sa.Row[Any]:
    row = connection.execute(sa.select(groups, _SIZE).where(groups.c.id == identifier)).first()
    if row is None:
        raise NotFound("there is no such group")
    return row


def find(connection: sa.Connection, page: Page) -> tuple[Sequence[sa.Row[Any]], int]:
    query = sa.select(groups, _SIZE).order_by(groups.c.name, groups.c.id)
    return select_page(connection, query, page, names=[groups.c.name])


def update(connection: sa.Connection, identifier: str, *, description: str) -> None:
    get(connection, identifier)
    connection.execute(sa.update(groups).where(groups.c.id == identifier).values(description=description))


def delete(connection: sa.Connection, identifier: str, *, at: int) -> None:
    get(connection, identifier)
    if bindings.would_lose_admins(connection, without_group=identifier):
        raise FailedPrecondition(
            "without this group the platform would have no administrator; make another user Platform Admin first"
        )
    bindings.remove_of_subject(connection, "Group", identifier, at=at)
    members = sa.select(group_members.c.user_id).where(group_members.c.group_id == identifier)
    directory.record_changes(connection, "user", connection.execute(members).scalars().all(), at=at)
    connection.execute(sa.delete(groups).where(groups.c.id == identifier))


def members(connection: sa.Connection, identifier: str, page: Page) -> tuple[Sequence[sa.Row[Any]], int]:
    get(connection, identifier)
    query = (
        sa.select(schema.users)
        .join(group_members, group_members.c.user_id == schema.users.c.id)
        .where(group_members.c.group_id == identifier)
        .order_by(schema.users.c.name)
    )
    return select_page(connection, query, page, names=[schema.users.c.name, schema.users.c.display_name])


def add_member(connection: sa.Connection, identifier: str, user: str, *, at: int) -> None:
    """Adds a user to a group. Adding a member again changes nothing."""
    _check_not_of_provider(get(connection, identifier))
    users.get(connection, user)
    if not _is_member(connection, identifier, user):
        connection.execute(sa.insert(group_members).values(group_id=identifier, user_id=user))
        directory.record_changes(connection, "user", [user], at=at)
        effective.refresh_group(connection, identifier, at=at)


def remove_member(connection: sa.Connection, identifier: str, user: str, *, at: int) -> None:
    _check_not_of_provider(get(connection, identifier))
    if not _is_member(connection, identifier, user):
        raise NotFound("this user is not in the group")
    if bindings.would_lose_admins(connection, without_user=user, in_group=identifier):
        raise FailedPrecondition("this is the last Platform Admin who can sign in; give another user this role first")
    _remove(connection, identifier, user)
    directory.record_changes(connection, "user", [user], at=at)
    effective.refresh_group(connection, identifier, at=at)


def sync_with_claims(connection: sa.Connection, user: str, *, provider: str, names: Iterable[str], at: int) -> None:
    """Makes the user a member of exactly these groups of the identity provider, and creates those that are missing."""
    wanted = set()
    for name in names:
        found = connection.execute(sa.select(groups.c.id).where(groups.c.provider == provider, groups.c.name == name))
        wanted.add(found.scalar() or create(connection, name=name, provider=provider, at=at))
    query = (
        sa.select(group_members.c.group_id)
        .join(groups, groups.c.id == group_members.c.group_id)
        .where(group_members.c.user_id == user, groups.c.provider == provider)
    )
    present = set(connection.execute(query).scalars())
    for identifier in present - wanted:
        _remove(connection, identifier, user)
    for identifier in wanted - present:
        connection.execute(sa.insert(group_members).values(group_id=identifier, user_id=user))
    if present != wanted:
        directory.record_changes(connection, "user", [user], at=at)
    for identifier in present ^ wanted:
        effective.refresh_group(connection, identifier, at=at)


def _is_member(connection: sa.Connection, identifier: str, user: str) -> bool:
    query = sa.select(group_members).where(group_members.c.group_id == identifier, group_members.c.user_id == user)
    return connection.execute(query).first() is not None


def _remove(connection: sa.Connection, identifier: str, user: str) -> None:
    connection.execute(
        sa.delete(group_members).where(group_members.c.group_id == identifier, group_members.c.user_id == user)
    )


def _check_not_of_provider(group: sa.Row[Any]) -> None:
    if group.provider:
        raise FailedPrecondition(f"{group.provider} decides who is in this group; change its members there")
