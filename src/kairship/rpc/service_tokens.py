"""Which of our processes calls: tokens of service accounts of the global cluster, verified without asking it.

A token counts if the global cluster has signed it, for us (its audience), for one of the accounts that may call, and
for this time. The keys are those that the cluster publishes; they are read when the process starts, every few minutes,
and when a token names one that is not known, though not at every such token.
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
_READ_AGAIN = 600.0
_NOT_SOONER = 5.0
_LEEWAY = 30
_TIMEOUT = 5.0
_REMEMBERED = 256

log = structlog.get_logger(__name__)


class ServiceTokens:
    def __init__(
        self,
        client: Client,
        *,
        audience: str,
        accounts: Collection[str],
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`client` is of the global cluster; `accounts` are those of the plane's namespace that may call."""
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
        """Raises `Unauthenticated`, or `Unavailable` as long as the keys cannot be had."""
        digest = hashlib.sha256(token.encode()).digest()
        known = self._good.get(digest)
        if known is not None and known[1] > self._now():
            await self._keep_current()
            return known[0]
        claims = await self._verified(token)
        account = self._accounts.get(str(claims.get("sub")))
        audience = claims.get("aud")
        if account is None or self._audience not in ([audience] if isinstance(audience, str) else audience or ()):
            raise Unauthenticated("this service account may not call this process")
        if len(self._good) >= _REMEMBERED:
            self._good.clear()
        self._good[digest] = (account, float(claims["exp"]))
        return account

    async def _verified(self, token: str) -> Mapping[str, Any]:
        await self._keep_current()
        try:
            return self._decode(token)
        except (JoseError, ValueError, TypeError):
            # The cluster may have a new key. Whoever sends rubbish does not make us ask for each of it.
            if self._clock() - self._read_at < _NOT_SOONER:
                raise Unauthenticated("the token of the service account is not valid") from None
        await self._read()
        try:
            return self._decode(token)
        except (JoseError, ValueError, TypeError):
            raise Unauthenticated("the token of the service account is not valid") from None

    def _decode(self, token: str) -> Mapping[str, Any]:
        if self._keys is None:
            raise Unavailable("the keys of the global cluster are not known yet; try again", retry_after=1.0)
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
        if self._clock() - self._read_at < _READ_AGAIN:
            return
        await self._read()

    async def _read(self) -> None:
        self._read_at = self._clock()
        try:
            described = await self._published("/.well-known/openid-configuration")
            published = await self._published("/openid/v1/jwks")
            self._keys, self._issuer = KeySet.import_key_set(published), described["issuer"]
            # A key that was withdrawn takes its tokens with it.
            self._good.clear()
        except (KubeError, JoseError, msgspec.DecodeError, KeyError, TypeError, ValueError) as error:
            self._read_at = self._clock() - _READ_AGAIN + _NOT_SOONER
            log.warning("keys of the global cluster not read", error=str(error))

    async def _published(self, path: str) -> Any:
        headers = {"Accept": "application/jwk-set+json, application/json"}
        reply = await self._client.request("GET", path, headers=headers, timeout=_TIMEOUT)
        if reply.status != 200:
            raise ValueError(f"the cluster answered {reply.status} to {path}")
        return msgspec.json.decode(reply.body)
