"""The service IdentityProviders: the OpenID Connect providers that users can sign in with."""

from typing import Any

import sqlalchemy as sa
from protobuf.wkt import Empty

from kairship.gen.kairship.ghippo.v1alpha1.identity_provider_pb import (
    CreateIdentityProviderRequest,
    DeleteIdentityProviderRequest,
    GetIdentityProviderRequest,
    IdentityProvider,
    ListIdentityProvidersRequest,
    ListIdentityProvidersResponse,
    UpdateIdentityProviderRequest,
)
from kairship.ghippo.database import Database
from kairship.ghippo.errors import InvalidArgument
from kairship.ghippo.identifiers import Now, now
from kairship.ghippo.identity import identity_providers
from kairship.ghippo.sealing import Sealer
from kairship.rpc.calls import Call


def _message(row: sa.Row[Any]) -> IdentityProvider:
    return IdentityProvider(
        name=row.name,
        display_name=row.display_name,
        issuer=row.issuer,
        client_id=row.client_id,
        groups_claim=row.groups_claim,
        redirect_uris=row.redirect_uris.split("\n"),
        disabled=row.disabled,
        unconfirmed=row.unconfirmed,
    )


def _settings(message: IdentityProvider | None) -> identity_providers.Settings:
    if message is None:
        raise InvalidArgument("provider must be set: it has the settings of the identity provider", field="provider")
    return identity_providers.Settings(
        name=message.name,
        display_name=message.display_name,
        issuer=message.issuer,
        client_id=message.client_id,
        groups_claim=message.groups_claim,
        redirect_uris=tuple(message.redirect_uris),
        disabled=message.disabled,
    )


class IdentityProviders:
    def __init__(self, database: Database, sealer: Sealer, *, clock: Now = now) -> None:
        self._database = database
        self._sealer = sealer
        self._now = clock

    async def list_identity_providers(
        self, request: ListIdentityProvidersRequest, call: Call
    ) -> ListIdentityProvidersResponse:
        rows = await self._database.read(identity_providers.find)
        return ListIdentityProvidersResponse(items=[_message(row) for row in rows])

    async def create_identity_provider(self, request: CreateIdentityProviderRequest, call: Call) -> IdentityProvider:
        settings = _settings(request.provider)

        def work(connection: sa.Connection) -> IdentityProvider:
            identity_providers.create(connection, self._sealer, settings, request.client_secret)
            return _message(identity_providers.get(connection, settings.name))

        return await self._database.write(work)

    async def get_identity_provider(self, request: GetIdentityProviderRequest, call: Call) -> IdentityProvider:
        return _message(await self._database.read(lambda connection: identity_providers.get(connection, request.name)))

    async def update_identity_provider(self, request: UpdateIdentityProviderRequest, call: Call) -> IdentityProvider:
        settings = _settings(request.provider)
        if settings.name != request.name:
            raise InvalidArgument("the name of an identity provider cannot be changed", field="provider.name")

        def work(connection: sa.Connection) -> IdentityProvider:
            identity_providers.update(
                connection,
                self._sealer,
                settings,
                request.client_secret,
                actor=call.caller,
                keep_users=request.keep_users,
                at=self._now(),
            )
            return _message(identity_providers.get(connection, settings.name))

        return await self._database.write(work)

    async def delete_identity_provider(self, request: DeleteIdentityProviderRequest, call: Call) -> Empty:
        await self._database.write(lambda connection: identity_providers.delete(connection, request.name))
        return Empty()
