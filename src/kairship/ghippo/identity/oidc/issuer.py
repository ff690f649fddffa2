"""The client of identity providers: reads their metadata and keys, and exchanges codes for ID tokens.

Connections are held to the operator's rule of addresses, replies are bounded in time and size, and redirects are not
followed. Callers learn nothing of what answers at an issuer's address, because signing in begins without a credential:
`ProviderUnreachable` has the reason for the log. Metadata is cached for an hour; keys until a token
names an unknown one, so that a provider can rotate its keys at any moment.
"""

import base64
from typing import Any
from urllib.parse import quote

import aiohttp
import msgspec
from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet
from joserfc.jwt import JWTClaimsRegistry

from kairship.ghippo.errors import PermissionDenied, Unavailable
from kairship.ghippo.outgoing import outgoing_session, reason_of
from kairship.kube import AddressRule
from kairship.reconcile import Clock, SystemClock

MAX_BYTES = 512 * 1024
# No symmetric algorithm, because the client secret is no signing key; and never `none`.
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA"]
_METADATA_KEPT = 3600.0
_KEYS_REFETCH_AFTER = 10.0
_LEEWAY = 60


class ProviderUnreachable(Unavailable):
    """No usable answer of a provider. `reason` is for the log of the operator."""

    def __init__(self, reason: str) -> None:
        super().__init__("the identity provider could not be reached; try again in a moment")
        self.reason = reason


class ProviderMetadata(msgspec.Struct, frozen=True):
    """The fields of a provider's OpenID configuration that are needed."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    end_session_endpoint: str = ""
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)


class _Tokens(msgspec.Struct, frozen=True):
    id_token: str


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """Our registration as a client of a provider."""

    issuer: str
    client_id: str
    secret: str | None

    def __repr__(self) -> str:
        return f"Client({self.issuer!r}, {self.client_id!r})"

    __str__ = __repr__


class _Issuer:
    def __init__(self, metadata: ProviderMetadata, at: float) -> None:
        self.metadata = metadata
        self.discovered_at = at
        self.keys: KeySet | None = None
        self.keys_at = float("-inf")


class Issuers:
    """The providers with their cached metadata and keys. One per process, to be closed."""

    def __init__(self, addresses: AddressRule, *, clock: Clock | None = None) -> None:
        """`addresses` are those that providers may have."""
        self._addresses = addresses
        self._clock = clock or SystemClock()
        self._known: dict[str, _Issuer] = {}
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def discover(self, issuer: str) -> ProviderMetadata:
        return (await self._find(issuer)).metadata

    async def exchange(self, client: Client, *, code: str, verifier: str, redirect_uri: str) -> str:
        """Exchanges an authorization code for an ID token."""
        metadata = await self.discover(client.issuer)
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "code_verifier": verifier,
            "redirect_uri": redirect_uri,
            "client_id": client.client_id,
        }
        headers = {}
        if client.secret is not None:
            if "client_secret_basic" in metadata.token_endpoint_auth_methods_supported:
                pair = f"{quote(client.client_id, safe='')}:{quote(client.secret, safe='')}"
                headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
            else:
                form["client_secret"] = client.secret
        body = await self._request("POST", metadata.token_endpoint, data=form, headers=headers)
        tokens: _Tokens = _decoded(body, _Tokens)
        return tokens.id_token

    async def verify(self, client: Client, token: str, *, nonce: str, at: int) -> dict[str, Any]:
        """The claims of an ID token, if it is genuine, current, for us, and for this very sign-in."""
        known = await self._find(client.issuer)
        if known.keys is None:
            await self._fetch_keys(known)
        try:
            claims = self._decode(known, token)
        except InvalidKeyIdError:
            if self._clock.now() - known.keys_at < _KEYS_REFETCH_AFTER:
                raise _invalid_id_token() from None
            await self._fetch_keys(known)
            try:
                claims = self._decode(known, token)
            except InvalidKeyIdError as error:
                raise _invalid_id_token() from error
        registry = JWTClaimsRegistry(
            now=at,
            leeway=_LEEWAY,
            iss={"essential": True, "value": client.issuer},
            aud={"essential": True, "value": client.client_id},
            sub={"essential": True},
            exp={"essential": True},
            iat={"essential": True},
            nonce={"essential": True, "value": nonce},
        )
        try:
            registry.validate(claims)
        except JoseError as error:
            raise _invalid_id_token() from error
        several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
        if claims.get("azp", None if several else client.client_id) != client.client_id:
            raise _invalid_id_token()
        return claims

    def _decode(self, known: _Issuer, token: str) -> dict[str, Any]:
        """Raises `InvalidKeyIdError` for an unknown key, which may be a new one."""
        if known.keys is None:
            raise _invalid_id_token()
        try:
            return jwt.decode(token, known.keys, algorithms=ALGORITHMS).claims
        except InvalidKeyIdError:
            raise
        except (JoseError, ValueError) as error:
            raise _invalid_id_token() from error

    async def _find(self, issuer: str) -> _Issuer:
        known = self._known.get(issuer)
        if known is not None and self._clock.now() - known.discovered_at < _METADATA_KEPT:
            return known
        body = await self._request("GET", f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        metadata = _decoded(body, ProviderMetadata)
        if metadata.issuer != issuer:
            raise ProviderUnreachable(
                f"the identity provider names itself {metadata.issuer[:200]!r} and not {issuer!r}"
            )
        secure = issuer.startswith("https://")
        needed = (metadata.authorization_endpoint, metadata.token_endpoint, metadata.jwks_uri)
        for url in (*needed, metadata.end_session_endpoint or issuer):
            if not url.startswith(("https://",) if secure else ("https://", "http://")):
                raise ProviderUnreachable("the identity provider has endpoints without https")
        known = self._known[issuer] = _Issuer(metadata, self._clock.now())
        return known

    async def _fetch_keys(self, known: _Issuer) -> None:
        keys = _decoded(await self._request("GET", known.metadata.jwks_uri), dict[str, Any])
        try:
            known.keys = KeySet.import_key_set({"keys": _for_signatures(keys)})
        except (JoseError, ValueError, TypeError, KeyError) as error:
            raise _invalid_id_token() from error
        known.keys_at = self._clock.now()

    async def _request(self, method: str, url: str, **more: Any) -> bytes:
        if self._session is None:
            self._session = outgoing_session(self._addresses)
        try:
            async with self._session.request(method, url, allow_redirects=False, **more) as reply:
                body = await reply.content.read(MAX_BYTES + 1)
                while len(body) <= MAX_BYTES and (piece := await reply.content.read(MAX_BYTES + 1 - len(body))):
                    body += piece
                status = reply.status
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise ProviderUnreachable(reason_of(error)) from error
        if method == "POST" and status in {400, 401, 403}:
            # The body may quote the code or the secret, so it is not passed on.
            raise PermissionDenied(
                "the identity provider refused the sign-in; begin again, or check the client's settings"
            )
        if status != 200 or len(body) > MAX_BYTES:
            raise ProviderUnreachable(f"the identity provider answered {status}, or more than {MAX_BYTES} bytes")
        return body


def _for_signatures(keys: dict[str, Any]) -> list[dict[str, Any]]:
    """The signature keys of known types. Providers also publish keys for encryption, and of other types."""
    found = keys.get("keys")
    return [
        key
        for key in (found if isinstance(found, list) else [])
        if isinstance(key, dict) and key.get("use", "sig") == "sig" and key.get("kty") in {"RSA", "EC", "OKP"}
    ]


def _decoded(body: bytes, kind: type[Any]) -> Any:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProviderUnreachable("the answer of the identity provider is not OpenID Connect") from error


def _invalid_id_token() -> PermissionDenied:
    return PermissionDenied("the ID token of the identity provider is not valid; begin the sign-in again")
