"""Finds or creates the user of an ID token's claims, with its groups. Functions of a connection.

A user is identified by the provider, its issuer and the `sub` claim, and by nothing else: names and email addresses are
claims that users may be able to choose, so they never match an existing user.
"""

import hashlib
import re
import secrets
from typing import Any

import sqlalchemy as sa

from kairship.ghippo.database import schema
from kairship.ghippo.errors import PermissionDenied
from kairship.ghippo.identifiers import storable
from kairship.ghippo.identity import groups, users

MAX_GROUPS = 200
_MAX_LENGTH = 128
_UNUSABLE = re.compile(r"[^a-z0-9._-]+")


def find_or_create_user(
    connection: sa.Connection, claims: dict[str, Any], *, provider: str, issuer: str, groups_claim: str, at: int
) -> sa.Row[Any]:
    """The user of the claims, created at the first sign-in. The user's groups follow the claims at every sign-in."""
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= 255:
        raise PermissionDenied("the ID token of the identity provider has no usable `sub` claim")
    subject = storable(subject)
    table = schema.users
    query = sa.select(table).where(
        table.c.provider == provider, table.c.issuer == issuer, table.c.external_subject == subject
    )
    user = connection.execute(query).first()
    profile = {"display_name": _text(claims.get("name")), "email": _text(claims.get("email"))}
    if user is None:
        name = _free_name(connection, claims, provider, subject)
        users.create(
            connection, name=name, provider=provider, issuer=issuer, external_subject=subject, at=at, **profile
        )
    else:
        connection.execute(sa.update(table).where(table.c.id == user.id).values(profile))
    user = connection.execute(query).one()
    groups.sync_with_claims(connection, user.id, provider=provider, names=group_names(claims, groups_claim), at=at)
    return user


def group_names(claims: dict[str, Any], claim: str) -> list[str]:
    """The names in the groups claim, without unusable ones and those that look like an identity of Kubernetes."""
    found = claims.get(claim)
    names = [found] if isinstance(found, str) else found if isinstance(found, list) else []
    usable = {
        name
        for name in names
        if isinstance(name, str)
        and 0 < len(name) <= _MAX_LENGTH
        and name.isprintable()
        and not name.lower().strip("/ ").startswith(("system:", "kairship:"))
    }
    if len(usable) > MAX_GROUPS:
        raise PermissionDenied(f"the identity provider names more than {MAX_GROUPS} groups; let it send fewer")
    return sorted(usable)


def _free_name(connection: sa.Connection, claims: dict[str, Any], provider: str, subject: str) -> str:
    """A name that nobody has. Users of a deleted provider of the same name keep theirs."""
    for name in (_name(claims, provider, subject), _name({}, provider, subject)):
        if users.find_by_name(connection, name) is None:
            return name
    return _name({}, provider, subject + secrets.token_hex(8))


def _name(claims: dict[str, Any], provider: str, subject: str) -> str:
    """A name such as `ann@corp`. Names of local users have no @, so it cannot be a local user's."""
    preferred = _UNUSABLE.sub("-", _text(claims.get("preferred_username")).lower()).strip("-._")[:63]
    return f"{preferred or hashlib.sha256(subject.encode()).hexdigest()[:16]}@{provider}"


def _text(claim: Any) -> str:
    return storable(claim)[:_MAX_LENGTH] if isinstance(claim, str) else ""
