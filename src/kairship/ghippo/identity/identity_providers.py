"""The OpenID Connect providers whose users can sign in here. Functions of a connection."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from kairship.ghippo.database.schema import identity_providers, provider_logins
from kairship.ghippo.errors import AlreadyExists, InvalidArgument, NotFound
from kairship.ghippo.sealing import Sealer
from kairship.ghippo.urls import check_url

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


def update(connection: sa.Connection, sealer: Sealer, settings: Settings, secret: str) -> None:
    """Without a secret the old one stays, unless the issuer changes: it must not be sent to another provider."""
    settings.check()
    known = get(connection, settings.name)
    if not secret and known.sealed_secret is not None and known.issuer != settings.issuer:
        raise InvalidArgument("another issuer needs its own client secret; give it as well", field="client_secret")
    values = _columns(settings) | ({"sealed_secret": sealer.seal(secret)} if secret else {})
    connection.execute(sa.update(identity_providers).where(identity_providers.c.name == settings.name).values(values))


def delete(connection: sa.Connection, name: str) -> None:
    get(connection, name)
    connection.execute(sa.delete(provider_logins).where(provider_logins.c.provider == name))
    connection.execute(sa.delete(identity_providers).where(identity_providers.c.name == name))


def _columns(settings: Settings) -> dict[str, Any]:
    return {
        "display_name": settings.display_name,
        "issuer": settings.issuer,
        "client_id": settings.client_id,
        "groups_claim": settings.groups_claim or _DEFAULT_GROUPS_CLAIM,
        "redirect_uris": "\n".join(settings.redirect_uris),
        "disabled": settings.disabled,
    }
