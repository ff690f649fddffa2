"""From the claims of an identity provider to a user and groups. Functions of a connection.

A user is known by the provider and its identifier there, and by nothing else: names and addresses are claims that
anybody may be able to choose, so they never lead to somebody who exists already.
"""

import hashlib
import re
from typing import Any

import sqlalchemy as sa

from kairship.ghippo import groups, users
from kairship.ghippo.database import schema
from kairship.ghippo.errors import Refused
from kairship.ghippo.identifiers import storable

MOST_GROUPS = 200
_LONGEST = 128
_UNUSABLE = re.compile(r"[^a-z0-9._-]+")


def sign_up_or_in(
    connection: sa.Connection, claims: dict[str, Any], *, provider: str, groups_claim: str, at: int
) -> sa.Row[Any]:
    """The user that the claims are about, made at the first sign-in, with the groups of this moment."""
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= 255:
        raise Refused("the identity provider does not say who this is")
    subject = storable(subject)
    table = schema.users
    query = sa.select(table).where(table.c.provider == provider, table.c.external_subject == subject)
    user = connection.execute(query).first()
    profile = {"display_name": _text(claims.get("name")), "email": _text(claims.get("email"))}
    if user is None:
        name = _name(claims, provider, subject)
        if users.find_by_name(connection, name) is not None:
            name = _name({}, provider, subject)
        users.create(connection, name=name, provider=provider, external_subject=subject, at=at, **profile)
    else:
        connection.execute(sa.update(table).where(table.c.id == user.id).values(profile))
    user = connection.execute(query).one()
    groups.follow_claims(connection, user.id, provider=provider, names=group_names(claims, groups_claim), at=at)
    return user


def group_names(claims: dict[str, Any], claim: str) -> list[str]:
    """What is not a plain name is left out, and whatever looks like an identity of Kubernetes."""
    found = claims.get(claim)
    names = [found] if isinstance(found, str) else found if isinstance(found, list) else []
    usable = {
        name
        for name in names
        if isinstance(name, str)
        and 0 < len(name) <= _LONGEST
        and name.isprintable()
        and not name.lower().strip("/ ").startswith(("system:", "kairship:"))
    }
    if len(usable) > MOST_GROUPS:
        raise Refused(f"the identity provider names more than {MOST_GROUPS} groups; send fewer in the claim")
    return sorted(usable)


def _name(claims: dict[str, Any], provider: str, subject: str) -> str:
    """`ann@corp`: no local user has a name with an @, so it is nobody else's."""
    preferred = _UNUSABLE.sub("-", _text(claims.get("preferred_username")).lower()).strip("-._")[:63]
    return f"{preferred or hashlib.sha256(subject.encode()).hexdigest()[:16]}@{provider}"


def _text(claim: Any) -> str:
    return storable(claim)[:_LONGEST] if isinstance(claim, str) else ""
