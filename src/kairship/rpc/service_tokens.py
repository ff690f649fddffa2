"""Authenticates our own processes by service account tokens of the global cluster, without a TokenReview per call.

A token is accepted if the global cluster has signed it, its audience is this backend, its subject is one of the
accounts that may call, and it has not expired. The cluster publishes its keys (JWKS); they are read when the process
starts, every ten minutes, and when a token names an unknown key, but then not more often than every few seconds.
"""

import hashlib
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec
import structlog
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from kairship.kube import Client, KubeError
from kairship.resources import NAMESPACE
from kairship.rpc.errors import Unauthenticated, Unavailable

_ALGORITHMS = ["RS256", "ES256"]
_REFRESH_INTERVAL = 600.0
_MIN_REFRESH_INTERVAL = 5.0
_LEEWAY = 30
_TIMEOUT = 5.0
_REMEMBERED = 256

log = structlog.get_logger(__name__)


class ServiceTokens:
    """Verifies service account tokens and remembers the verified ones until they expire."""

    def __init__(
        self,
        client: Client,
        *,
        audience: str,
        accounts: Collection[str],
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`client` is that of the global cluster. `accounts` of the plane's namespace may call."""
        self._client = client
        self._audience = audience
        self._accounts = {f"system:serviceaccount:{NAMESPACE}:{account}": account for account in accounts}
        self._clock = clock
        self._now = now
        self._keys: KeySet | None = None
        self._issuer = ""
        self._read_at = float("-inf")
        self._good: dict[bytes, tuple[str, float]] = {}

    async def account_of(self, token: str) -> str:
        """Returns the account of a token.

        Raises `Unauthenticated`, or `Unavailable` as long as the keys could not be read.
        """
        digest = hashlib.sha256(token.encode()).digest()
        known = self._good.get(digest)
        if known is not None and known[1] > self._now():
            await self._keep_current()
            return known[0]
        claims = await self._verified(token)
        account = self._accounts.get(str(claims.get("sub")))
        audience = claims.get("aud")
        if account is None or self._audience not in ([audience] if isinstance(audience, str) else audience or ()):
            raise Unauthenticated("this service account may not call this process, or the token has another audience")
        if len(self._good) >= _REMEMBERED:
            self._good.clear()
        self._good[digest] = (account, float(claims["exp"]))
        return account

    async def _verified(self, token: str) -> Mapping[str, Any]:
        await self._keep_current()
        try:
            return self._decode(token)
        except (JoseError, ValueError, TypeError):
            # The cluster may have a new key. A client that sends rubbish must not make us read the keys each time.
            if self._clock() - self._read_at < _MIN_REFRESH_INTERVAL:
                raise Unauthenticated("the service account token is not valid") from None
        await self._read()
        try:
            return self._decode(token)
        except (JoseError, ValueError, TypeError):
            raise Unauthenticated("the service account token is not valid") from None

    def _decode(self, token: str) -> Mapping[str, Any]:
        if self._keys is None:
            raise Unavailable("the token keys of the global cluster have not been read yet; try again", retry_after=1.0)
        claims = jwt.decode(token, self._keys, algorithms=_ALGORITHMS).claims
        rules = jwt.JWTClaimsRegistry(
            now=int(self._now()),
            leeway=_LEEWAY,
            iss={"essential": True, "value": self._issuer},
            exp={"essential": True},
            sub={"essential": True},
            aud={"essential": True},
        )
        rules.validate(claims)
        return claims

    async def _keep_current(self) -> None:
        if self._clock() - self._read_at < _REFRESH_INTERVAL:
            return
        await self._read()

    async def _read(self) -> None:
        self._read_at = self._clock()
        try:
            configuration = await self._published("/.well-known/openid-configuration")
            keys = await self._published("/openid/v1/jwks")
            self._keys, self._issuer = KeySet.import_key_set(keys), configuration["issuer"]
            # Tokens of a key that was withdrawn are not accepted any more.
            self._good.clear()
        except (KubeError, JoseError, msgspec.DecodeError, KeyError, TypeError, ValueError) as error:
            self._read_at = self._clock() - _REFRESH_INTERVAL + _MIN_REFRESH_INTERVAL
            log.warning("keys of the global cluster not read", error=str(error))

    async def _published(self, path: str) -> Any:
        headers = {"Accept": "application/jwk-set+json, application/json"}
        reply = await self._client.request("GET", path, headers=headers, timeout=_TIMEOUT)
        if reply.status != 200:
            raise ValueError(f"the cluster answered {reply.status} to {path}")
        return msgspec.json.decode(reply.body)
