"""The OpenID Connect providers whose users can sign in here. Functions of a connection.

The settings of a provider decide who a user is who signs in with it. After they change, another person could sign in as
any of its users, and in any of its groups. So nobody can until a caller who holds everything that they hold confirms
that they are the same. The users and groups of a deleted provider never become those of a later one.
"""

import re
import secrets
from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from kairship.ghippo.database.schema import groups, identity_providers, provider_logins, users
from kairship.ghippo.errors import AlreadyExists, FailedPrecondition, InvalidArgument, NotFound
from kairship.ghippo.identity import directory
from kairship.ghippo.sealing import Sealer
from kairship.ghippo.tenancy import bindings, escalation
from kairship.ghippo.urls import check_url
from kairship.rpc.calls import Caller

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_DEFAULT_GROUPS_CLAIM = "groups"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of an identity provider, without its client secret, which is never returned."""

    name: str
    display_name: str = ""
    issuer: str
    client_id: str
    groups_claim: str = ""
    redirect_uris: tuple[str, ...]
    disabled: bool = False

    def check(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InvalidArgument(
                "a name has 1 to 63 characters of a-z, 0-9 and '-', not at its ends",
                field="provider.name",
            )
        if not self.client_id or len(self.client_id) > 256:
            raise InvalidArgument(
                "client_id must be the one that the provider has issued",
                field="provider.client_id",
            )
        if not self.redirect_uris or len(self.redirect_uris) > 16:
            raise InvalidArgument(
                "give 1 to 16 redirect URIs, to which browsers return", field="provider.redirect_uris"
            )
        check_url(self.issuer)
        for uri in self.redirect_uris:
            check_url(uri)
        if "?" in self.issuer:
            raise InvalidArgument("the URL of an issuer has no query", field="provider.issuer")
        if len(self.display_name) > 128 or len(self.groups_claim) > 128:
            raise InvalidArgument("display_name and groups_claim have at most 128 characters", field="provider")


def create(connection: sa.Connection, sealer: Sealer, settings: Settings, secret: str) -> None:
    settings.check()
    sealed = sealer.seal(secret) if secret else None
    try:
        with connection.begin_nested():
            connection.execute(
                sa.insert(identity_providers).values(name=settings.name, sealed_secret=sealed, **_columns(settings))
            )
    except IntegrityError as error:
        raise AlreadyExists(f"there is an identity provider {settings.name} already; choose another name") from error


def get(connection: sa.Connection, name: str) -> sa.Row[Any]:
    row = connection.execute(sa.select(identity_providers).where(identity_providers.c.name == name)).first()
    if row is None:
        raise NotFound(f"there is no identity provider {name}")
    return row


def find(connection: sa.Connection, *, usable: bool = False) -> Sequence[sa.Row[Any]]:
    query = sa.select(identity_providers).order_by(identity_providers.c.name)
    return connection.execute(query.where(identity_providers.c.disabled.is_(False)) if usable else query).all()


def update(
    connection: sa.Connection,
    sealer: Sealer,
    settings: Settings,
    secret: str,
    *,
    actor: Caller,
    keep_users: bool = False,
    at: int,
) -> None:
    """Changes a provider; with `keep_users` the actor confirms that its users are the same.

    Without a secret the old one stays, unless the issuer changes: it must not be sent to another provider.
    """
    settings.check()
    known = get(connection, settings.name)
    if not secret and known.sealed_secret is not None and known.issuer != settings.issuer:
        raise InvalidArgument("another issuer needs its own client secret; give it as well", field="client_secret")
    values = _columns(settings) | ({"sealed_secret": sealer.seal(secret)} if secret else {})
    unconfirmed = known.unconfirmed or (_decides_otherwise(known, settings) and _has_users(connection, settings.name))
    if unconfirmed and keep_users:
        escalation.check_may_become_provider(connection, actor, settings.name)
        connection.execute(sa.update(users).where(users.c.provider == settings.name).values(issuer=settings.issuer))
        unconfirmed = False
    if unconfirmed != known.unconfirmed:
        _suspend_users(connection, settings.name, suspended=unconfirmed, at=at)
    changed = sa.update(identity_providers).where(identity_providers.c.name == settings.name)
    connection.execute(changed.values(**values, unconfirmed=unconfirmed))


def delete(connection: sa.Connection, name: str) -> None:
    get(connection, name)
    connection.execute(sa.delete(provider_logins).where(provider_logins.c.provider == name))
    connection.execute(sa.delete(identity_providers).where(identity_providers.c.name == name))
    # No provider can have a name with a colon.
    retired = f"{name[:40]}:deleted-{secrets.token_hex(4)}"
    for table in (users, groups):
        connection.execute(sa.update(table).where(table.c.provider == name).values(provider=retired))


def _decides_otherwise(known: sa.Row[Any], settings: Settings) -> bool:
    """Whether the settings let other people in than the known ones: other tokens, other groups, other places."""
    columns = _columns(settings)
    if any(getattr(known, each) != columns[each] for each in ("issuer", "client_id", "groups_claim")):
        return True
    return not set(settings.redirect_uris) <= set(known.redirect_uris.split("\n"))


def _has_users(connection: sa.Connection, name: str) -> bool:
    found = [sa.select(table.c.id).where(table.c.provider == name).limit(1) for table in (users, groups)]
    return any(connection.execute(query).first() is not None for query in found)


def _suspend_users(connection: sa.Connection, name: str, *, suspended: bool, at: int) -> None:
    had_admin = bindings.has_admin(connection)
    of_provider = users.c.provider == name
    connection.execute(sa.update(users).where(of_provider).values(suspended=suspended))
    if had_admin and not bindings.has_admin(connection):
        raise FailedPrecondition(
            "this would leave no Platform Admin who can sign in; confirm that the users are the same (keep_users), or"
            " give a user of another kind this role first"
        )
    identifiers = connection.execute(sa.select(users.c.id).where(of_provider)).scalars().all()
    directory.record_changes(connection, "user", identifiers, at=at)


def _columns(settings: Settings) -> dict[str, Any]:
    return {
        "display_name": settings.display_name,
        "issuer": settings.issuer,
        "client_id": settings.client_id,
        "groups_claim": settings.groups_claim or _DEFAULT_GROUPS_CLAIM,
        "redirect_uris": "\n".join(settings.redirect_uris),
        "disabled": settings.disabled,
    }
