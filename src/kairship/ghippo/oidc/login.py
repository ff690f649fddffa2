"""One person's way through an identity provider: out with a state, back with a code, and in.

What must be remembered meanwhile is in the database, so any replica can finish what another began, and a state is good
for one return within ten minutes.
"""

import base64
import hashlib
import secrets
from urllib.parse import urlencode

import msgspec
import sqlalchemy as sa

from kairship.ghippo import identity_providers
from kairship.ghippo.database import Database
from kairship.ghippo.database.schema import provider_logins
from kairship.ghippo.errors import Invalid, NotFound, Refused
from kairship.ghippo.identifiers import Now, hashed, new_secret, now
from kairship.ghippo.oidc.identity import sign_up_or_in
from kairship.ghippo.oidc.issuer import Client, Issuers
from kairship.ghippo.sealing import Sealer
from kairship.ghippo.sign_in import Origin, SignedIn, SignIn

LIFETIME = 600
_SCOPES = "openid profile email"


class Departure(msgspec.Struct, frozen=True):
    """Where to send the browser, and what it comes back with."""

    url: str
    state: str

    def __repr__(self) -> str:
        return "Departure(…)"

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

    async def begin(self, name: str, redirect_uri: str) -> Departure:
        provider = await self._usable(name)
        if redirect_uri not in provider.redirect_uris.split("\n"):
            raise Invalid("the provider is not set up to send browsers back there", field="redirect_uri")
        description = await self._issuers.describe(provider.issuer)
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
        return Departure(_with_query(description.authorization_endpoint, query), state)

    async def finish(self, name: str, *, state: str, code: str, origin: Origin) -> SignedIn:
        at, key = self._now(), hashed(state)

        def take(connection: sa.Connection) -> sa.Row[tuple[object, ...]] | None:
            """Once: whoever comes second with the same state finds nothing."""
            row = connection.execute(sa.select(provider_logins).where(provider_logins.c.state_hash == key)).first()
            connection.execute(sa.delete(provider_logins).where(provider_logins.c.state_hash == key))
            return row

        begun = await self._database.write(take)
        if begun is None or begun.provider != name or begun.expires_at <= at:
            raise Refused("this sign-in is not known, or too old; begin again")
        provider = await self._usable(name)
        client = Client(
            issuer=provider.issuer,
            client_id=provider.client_id,
            secret=None if provider.sealed_secret is None else self._sealer.open(provider.sealed_secret),
        )
        verifier = self._sealer.open(begun.sealed_verifier)
        token = await self._issuers.exchange(client, code=code, verifier=verifier, redirect_uri=begun.redirect_uri)
        claims = await self._issuers.verify(client, token, nonce=begun.nonce, at=self._now())

        def work(connection: sa.Connection) -> SignedIn:
            user = sign_up_or_in(connection, claims, provider=name, groups_claim=provider.groups_claim, at=self._now())
            return self._sign_in.as_user(connection, user, origin, id_token=token)

        return await self._database.write(work)

    async def way_out(self, name: str, sealed_id_token: bytes, redirect_uri: str) -> str:
        """Where a browser is sent so that the session at the provider ends too; empty if it has no such place."""
        provider = await self._usable(name)
        if redirect_uri and redirect_uri not in provider.redirect_uris.split("\n"):
            raise Invalid("the provider is not set up to send browsers back there", field="redirect_uri")
        endpoint = (await self._issuers.describe(provider.issuer)).end_session_endpoint
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


def _with_query(endpoint: str, query: dict[str, str]) -> str:
    return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"
