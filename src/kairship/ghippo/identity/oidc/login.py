"""The sign-in of one user with an identity provider, from the authorization request to the session.

Its state is in the database, so any replica can finish a sign-in that another began. A `state` is valid for one return
within ten minutes.
"""

import base64
import hashlib
import secrets
from urllib.parse import urlencode

import msgspec
import sqlalchemy as sa

from kairship.ghippo.database import Database
from kairship.ghippo.database.schema import provider_logins
from kairship.ghippo.errors import InvalidArgument, NotFound, PermissionDenied
from kairship.ghippo.identifiers import Now, hashed, new_secret, now
from kairship.ghippo.identity import identity_providers
from kairship.ghippo.identity.oidc.claims import find_or_create_user
from kairship.ghippo.identity.oidc.issuer import Client, Issuers
from kairship.ghippo.identity.sign_in import Origin, SignedIn, SignIn
from kairship.ghippo.sealing import Sealer

LIFETIME = 600
_SCOPES = "openid profile email"
_UNKNOWN_REDIRECT = "this is no redirect URI of the identity provider; ask an administrator to add it there"


class AuthorizationRequest(msgspec.Struct, frozen=True):
    """The URL to send the browser to, and the `state` that it returns with."""

    url: str
    state: str

    def __repr__(self) -> str:
        return "AuthorizationRequest(…)"

    __str__ = __repr__


class ProviderLogin:
    def __init__(
        self, database: Database, sealer: Sealer, sign_in: SignIn, issuers: Issuers, *, clock: Now = now
    ) -> None:
        self._database = database
        self._sealer = sealer
        self._sign_in = sign_in
        self._issuers = issuers
        self._now = clock

    async def begin(self, name: str, redirect_uri: str) -> AuthorizationRequest:
        provider = await self._usable(name)
        _check_confirmed(provider)
        if redirect_uri not in provider.redirect_uris.split("\n"):
            raise InvalidArgument(_UNKNOWN_REDIRECT, field="redirect_uri")
        metadata = await self._issuers.discover(provider.issuer)
        state, nonce, verifier = new_secret(), secrets.token_urlsafe(24), secrets.token_urlsafe(48)
        at = self._now()

        def work(connection: sa.Connection) -> None:
            connection.execute(sa.delete(provider_logins).where(provider_logins.c.expires_at <= at))
            connection.execute(
                sa.insert(provider_logins).values(
                    state_hash=hashed(state),
                    provider=name,
                    nonce=nonce,
                    sealed_verifier=self._sealer.seal(verifier),
                    redirect_uri=redirect_uri,
                    expires_at=at + LIFETIME,
                )
            )

        await self._database.write(work)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        query = {
            "response_type": "code",
            "client_id": provider.client_id,
            "redirect_uri": redirect_uri,
            "scope": _SCOPES,
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        return AuthorizationRequest(_with_query(metadata.authorization_endpoint, query), state)

    async def finish(self, name: str, *, state: str, code: str, origin: Origin) -> SignedIn:
        at, key = self._now(), hashed(state)

        def take(connection: sa.Connection) -> sa.Row[tuple[object, ...]] | None:
            """Takes the pending login out of the database, so that a state cannot be used twice."""
            row = connection.execute(sa.select(provider_logins).where(provider_logins.c.state_hash == key)).first()
            connection.execute(sa.delete(provider_logins).where(provider_logins.c.state_hash == key))
            return row

        begun = await self._database.write(take)
        if begun is None or begun.provider != name or begun.expires_at <= at:
            raise PermissionDenied("this sign-in is not known, or too old; begin again")
        provider = await self._usable(name)
        _check_confirmed(provider)
        client = Client(
            issuer=provider.issuer,
            client_id=provider.client_id,
            secret=None if provider.sealed_secret is None else self._sealer.open(provider.sealed_secret),
        )
        verifier = self._sealer.open(begun.sealed_verifier)
        token = await self._issuers.exchange(client, code=code, verifier=verifier, redirect_uri=begun.redirect_uri)
        claims = await self._issuers.verify(client, token, nonce=begun.nonce, at=self._now())

        def work(connection: sa.Connection) -> SignedIn:
            if identity_providers.get(connection, name) != provider:
                raise PermissionDenied("the identity provider was changed during this sign-in; begin again")
            user = find_or_create_user(
                connection,
                claims,
                provider=name,
                issuer=provider.issuer,
                groups_claim=provider.groups_claim,
                at=self._now(),
            )
            return self._sign_in.as_user(connection, user, origin, id_token=token)

        return await self._database.write(work)

    async def logout_url(self, name: str, sealed_id_token: bytes, redirect_uri: str) -> str:
        """The URL that ends the session at the provider too; empty if the provider has none."""
        provider = await self._usable(name)
        if redirect_uri and redirect_uri not in provider.redirect_uris.split("\n"):
            raise InvalidArgument(_UNKNOWN_REDIRECT, field="redirect_uri")
        endpoint = (await self._issuers.discover(provider.issuer)).end_session_endpoint
        if not endpoint:
            return ""
        query = {"id_token_hint": self._sealer.open(sealed_id_token), "client_id": provider.client_id}
        if redirect_uri:
            query["post_logout_redirect_uri"] = redirect_uri
        return _with_query(endpoint, query)

    async def _usable(self, name: str) -> sa.Row[tuple[object, ...]]:
        provider = await self._database.read(lambda connection: identity_providers.get(connection, name))
        if provider.disabled:
            raise NotFound(f"there is no identity provider {name}")
        return provider


def _check_confirmed(provider: sa.Row[tuple[object, ...]]) -> None:
    if provider.unconfirmed:
        raise PermissionDenied(
            f"the settings of {provider.name} were changed, and nobody can sign in with it until an administrator"
            " confirms that its users are the same (keepUsers of the identity provider); ask an administrator"
        )


def _with_query(endpoint: str, query: dict[str, str]) -> str:
    return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"
