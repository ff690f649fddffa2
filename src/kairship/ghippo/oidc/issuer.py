"""What we ask of an identity provider: its description, its keys, and tokens for a code.

Replies are bounded in time and size and redirects are not followed. Descriptions are kept for an hour; keys until a
token names one that is not among them, so that a provider can change its keys at any moment.
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

from kairship.ghippo.errors import Refused, Unavailable
from kairship.reconcile import Clock, SystemClock

TIMEOUT = aiohttp.ClientTimeout(total=10.0, connect=5.0)
LARGEST = 512 * 1024
# Nothing symmetric: the client secret is no signing key. And never none.
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA"]
_KEPT = 3600.0
_KEYS_AGAIN_AFTER = 10.0
_LEEWAY = 60


class Description(msgspec.Struct, frozen=True):
    """Its OpenID configuration, as far as it is needed."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    end_session_endpoint: str = ""
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)


class _Tokens(msgspec.Struct, frozen=True):
    id_token: str


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """Who we are to the provider."""

    issuer: str
    client_id: str
    secret: str | None

    def __repr__(self) -> str:
        return f"Client({self.issuer!r}, {self.client_id!r})"

    __str__ = __repr__


class _Known:
    def __init__(self, description: Description, at: float) -> None:
        self.description = description
        self.described_at = at
        self.keys: KeySet | None = None
        self.keys_at = float("-inf")


class Issuers:
    """The providers that were asked before. One per process; close it."""

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._known: dict[str, _Known] = {}
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def describe(self, issuer: str) -> Description:
        return (await self._find(issuer)).description

    async def exchange(self, client: Client, *, code: str, verifier: str, redirect_uri: str) -> str:
        """The ID token for a code."""
        description = await self.describe(client.issuer)
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "code_verifier": verifier,
            "redirect_uri": redirect_uri,
            "client_id": client.client_id,
        }
        headers = {}
        if client.secret is not None:
            if "client_secret_basic" in description.token_endpoint_auth_methods_supported:
                pair = f"{quote(client.client_id, safe='')}:{quote(client.secret, safe='')}"
                headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
            else:
                form["client_secret"] = client.secret
        body = await self._ask("POST", description.token_endpoint, data=form, headers=headers)
        tokens: _Tokens = _decoded(body, _Tokens)
        return tokens.id_token

    async def verify(self, client: Client, token: str, *, nonce: str, at: int) -> dict[str, Any]:
        """The claims of a genuine ID token that is for us, of now, and for this very sign-in."""
        known = await self._find(client.issuer)
        if known.keys is None:
            await self._fetch_keys(known)
        try:
            claims = self._decode(known, token)
        except InvalidKeyIdError:
            if self._clock.now() - known.keys_at < _KEYS_AGAIN_AFTER:
                raise _unbelievable() from None
            await self._fetch_keys(known)
            try:
                claims = self._decode(known, token)
            except InvalidKeyIdError as error:
                raise _unbelievable() from error
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
            raise _unbelievable() from error
        several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
        if claims.get("azp", None if several else client.client_id) != client.client_id:
            raise _unbelievable()
        return claims

    def _decode(self, known: _Known, token: str) -> dict[str, Any]:
        """Raises `InvalidKeyIdError` for a key that we do not have, perhaps not yet."""
        if known.keys is None:
            raise _unbelievable()
        try:
            return jwt.decode(token, known.keys, algorithms=ALGORITHMS).claims
        except InvalidKeyIdError:
            raise
        except (JoseError, ValueError) as error:
            raise _unbelievable() from error

    async def _find(self, issuer: str) -> _Known:
        known = self._known.get(issuer)
        if known is not None and self._clock.now() - known.described_at < _KEPT:
            return known
        body = await self._ask("GET", f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        description = _decoded(body, Description)
        if description.issuer != issuer:
            raise Refused(f"the identity provider calls itself {description.issuer[:200]!r} and not {issuer!r}")
        secure = issuer.startswith("https://")
        needed = (description.authorization_endpoint, description.token_endpoint, description.jwks_uri)
        for url in (*needed, description.end_session_endpoint or issuer):
            if not url.startswith(("https://",) if secure else ("https://", "http://")):
                raise Refused("the identity provider has endpoints that are not encrypted")
        known = self._known[issuer] = _Known(description, self._clock.now())
        return known

    async def _fetch_keys(self, known: _Known) -> None:
        keys = _decoded(await self._ask("GET", known.description.jwks_uri), dict[str, Any])
        try:
            known.keys = KeySet.import_key_set({"keys": _for_signatures(keys)})
        except (JoseError, ValueError, TypeError, KeyError) as error:
            raise _unbelievable() from error
        known.keys_at = self._clock.now()

    async def _ask(self, method: str, url: str, **more: Any) -> bytes:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=TIMEOUT)
        try:
            async with self._session.request(method, url, allow_redirects=False, **more) as reply:
                body = await reply.content.read(LARGEST + 1)
                while len(body) <= LARGEST and (piece := await reply.content.read(LARGEST + 1 - len(body))):
                    body += piece
                status = reply.status
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise Unavailable("the identity provider cannot be reached; try again in a moment") from error
        if status in {400, 401, 403}:
            # Its words may quote the code or the secret.
            raise Refused("the identity provider refused the sign-in; begin again, or check the client's settings")
        if status != 200 or len(body) > LARGEST:
            raise Unavailable(f"the identity provider answered {status}; try again in a moment")
        return body


def _for_signatures(keys: dict[str, Any]) -> list[dict[str, Any]]:
    """Providers publish keys for encryption beside those for signatures, and kinds that we do not know."""
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
        raise Unavailable("the identity provider answered something that is not understood") from error


def _unbelievable() -> Refused:
    return Refused("the identity provider's word is not believable; begin the sign-in again")
