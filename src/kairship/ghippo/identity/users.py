"""Users: the people and machines that can sign in. Functions of a connection, which run in a transaction."""

import re
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from kairship.ghippo.database.schema import access_tokens, group_members, sessions, users
from kairship.ghippo.errors import AlreadyExists, FailedPrecondition, InvalidArgument, NotFound
from kairship.ghippo.identifiers import new_id
from kairship.ghippo.identity import directory
from kairship.ghippo.listing import Page, select_page
from kairship.ghippo.tenancy import bindings, effective

ADMIN = "admin"
"""Name and identifier of the first user. No other user ever has this identifier."""

_NAME = re.compile(r"[a-z0-9]([-._a-z0-9]*[a-z0-9])?")
_RESERVED = ("system", "kairship", "kubernetes")


def check_name(name: str) -> None:
    """Refuses malformed names, and names that look like an identity of Kubernetes or of the plane."""
    if not _NAME.fullmatch(name) or len(name) > 63:
        raise InvalidArgument(
            "a name has 1 to 63 characters of a-z, 0-9, '-', '_' and '.', a letter or digit at both ends", field="name"
        )
    if name.startswith(_RESERVED):
        raise InvalidArgument(
            f"names that begin with {', '.join(_RESERVED)} are reserved; choose another", field="name"
        )


def create(
    connection: sa.Connection,
    *,
    name: str,
    at: int,
    display_name: str = "",
    email: str = "",
    password_hash: str | None = None,
    provider: str = "",
    external_subject: str | None = None,
    issuer: str = "",
    identifier: str | None = None,
) -> str:
    """Creates a user and returns the identifier, a new one unless it is given.

    The user must change a password that is set here at the first sign-in.
    """
    identifier = identifier or new_id("u")
    try:
        with connection.begin_nested():
            connection.execute(
                sa.insert(users).values(
                    id=identifier,
                    name=name,
                    display_name=display_name,
                    email=email,
                    password_hash=password_hash,
                    must_change_password=password_hash is not None,
                    provider=provider,
                    external_subject=external_subject,
                    issuer=issuer,
                    created_at=at,
                )
            )
    except IntegrityError as error:
        raise AlreadyExists(f"there is a user {name} already; choose another name", field="name") from error
    directory.record_changes(connection, "user", [identifier], at=at)
    return identifier


def get(connection: sa.Connection, identifier: str) -> sa.Row[Any]:
    row = connection.execute(sa.select(users).where(users.c.id == identifier)).first()
    if row is None:
        raise NotFound("there is no such user")
    return row


def find_by_name(connection: sa.Connection, name: str) -> sa.Row[Any] | None:
    return connection.execute(sa.select(users).where(users.c.name == name)).first()


def find(connection: sa.Connection, page: Page) -> tuple[Sequence[sa.Row[Any]], int]:
    query = sa.select(users).order_by(users.c.name)
    return select_page(connection, query, page, names=[users.c.name, users.c.display_name, users.c.email])


def groups_of(connection: sa.Connection, identifiers: Sequence[str]) -> dict[str, list[str]]:
    """The groups of each of these users."""
    found: dict[str, list[str]] = {identifier: [] for identifier in identifiers}
    query = sa.select(group_members).where(group_members.c.user_id.in_(identifiers)).order_by(group_members.c.group_id)
    for row in connection.execute(query):
        found[row.user_id].append(row.group_id)
    return found


def update(
    connection: sa.Connection, identifier: str, *, display_name: str, email: str, disabled: bool, at: int
) -> None:
    user = get(connection, identifier)
    if disabled and not user.disabled:
        _check_not_last_admin(connection, identifier)
        end_sessions(connection, identifier, at=at)
        end_tokens(connection, identifier, at=at)
    if disabled != user.disabled:
        directory.record_changes(connection, "user", [identifier], at=at)
    connection.execute(
        sa.update(users)
        .where(users.c.id == identifier)
        .values(display_name=display_name, email=email, disabled=disabled)
    )


def set_password(connection: sa.Connection, identifier: str, password_hash: str, *, must_change: bool) -> None:
    user = get(connection, identifier)
    if user.provider:
        raise FailedPrecondition(f"this user signs in with {user.provider}; change the password there")
    connection.execute(
        sa.update(users)
        .where(users.c.id == identifier)
        .values(password_hash=password_hash, must_change_password=must_change)
    )


def replace_hash(connection: sa.Connection, identifier: str, *, known: str, fresh: str) -> None:
    """Stores a new hash of the same password; does nothing if the password was changed meanwhile."""
    same = sa.and_(users.c.id == identifier, users.c.password_hash == known)
    connection.execute(sa.update(users).where(same).values(password_hash=fresh))


def record_login(connection: sa.Connection, identifier: str, *, at: int) -> None:
    connection.execute(sa.update(users).where(users.c.id == identifier).values(last_login_at=at))


def exist(connection: sa.Connection) -> bool:
    """Whether there is any user."""
    return connection.execute(sa.select(users.c.id).limit(1)).first() is not None


def end_sessions(connection: sa.Connection, identifier: str, *, at: int, but: str = "") -> None:
    ending = sa.and_(sessions.c.user_id == identifier, sessions.c.id != but)
    ended = connection.execute(sa.select(sessions.c.id).where(ending)).scalars().all()
    connection.execute(sa.delete(sessions).where(ending))
    directory.record_changes(connection, "session", ended, at=at)


def delete(connection: sa.Connection, identifier: str, *, at: int) -> None:
    get(connection, identifier)
    _check_not_last_admin(connection, identifier)
    bindings.remove_of_subject(connection, "User", identifier, at=at)
    end_sessions(connection, identifier, at=at)
    end_tokens(connection, identifier, at=at)
    groups = groups_of(connection, [identifier])[identifier]
    connection.execute(sa.delete(users).where(users.c.id == identifier))
    directory.record_changes(connection, "user", [identifier], at=at)
    for group in groups:
        effective.refresh_group(connection, group, at=at)


def end_tokens(connection: sa.Connection, identifier: str, *, at: int) -> None:
    """Revokes all access tokens of a user."""
    of_user = access_tokens.c.user_id == identifier
    ended = connection.execute(sa.select(access_tokens.c.id).where(of_user)).scalars().all()
    connection.execute(sa.delete(access_tokens).where(of_user))
    directory.record_changes(connection, "token", ended, at=at)


def _check_not_last_admin(connection: sa.Connection, identifier: str) -> None:
    """At least one Platform Admin who can sign in must be left."""
    if bindings.would_lose_admins(connection, without_user=identifier):
        raise FailedPrecondition("this is the last Platform Admin who can sign in; give another user this role first")
