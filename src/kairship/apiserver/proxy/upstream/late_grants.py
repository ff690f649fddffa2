"""Sends a request again whose right has not arrived inside yet (see `apiserver.auth.late_grants`).

If the plane's bindings grant a request and RBAC of the instance or member refuses it, the proxy repeats the request,
with growing pauses, before it passes the refusal on. The services do the same for their writes.
"""

import asyncio
import time

from kairship.apiserver.auth.late_grants import PROPAGATION_SECONDS, is_rbac_refusal
from kairship.apiserver.proxy.request.admitted import AdmittedRequest
from kairship.apiserver.proxy.request.authorisation import ProxyAuthoriser

LONGEST_REFUSAL = 64 << 10
"""Bytes of a 403 that are read to find out why. RBAC's own have a few hundred."""
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 1.0


class GrantRetries:
    """The attempts of one request. `timeout` is for all of them together."""

    def __init__(self, authoriser: ProxyAuthoriser, admitted: AdmittedRequest, *, timeout: float) -> None:
        self._authoriser = authoriser
        self._admitted = admitted
        self._timeout = timeout
        self._started = time.monotonic()
        self._next_pause = _FIRST_PAUSE

    @property
    def timeout(self) -> float:
        """Seconds that the next attempt may take."""
        is_first = self._next_pause == _FIRST_PAUSE
        return self._timeout if is_first else self._started + self._timeout - time.monotonic()

    def may_follow(self, refusal: bytes) -> bool:
        """Whether another attempt may follow a 403 with this body. If not, the refusal is final."""
        if self._remaining() <= 0 or _has_left(self._admitted):
            return False
        # A Status has the same text as JSON, where quotes are escaped, and as protobuf, where they are not.
        message = refusal.decode("utf-8", "replace").replace('\\"', '"')
        return is_rbac_refusal(message, self._admitted.authorisation.identity) and self._authoriser.grants_inside(
            self._admitted.caller, self._admitted.target, self._admitted.request_info
        )

    async def pause(self) -> None:
        """Waits before the next attempt; the last one is made when the time is over."""
        await asyncio.sleep(min(self._next_pause, max(0.0, self._remaining())))
        self._next_pause = min(2 * self._next_pause, _LONGEST_PAUSE)

    def _remaining(self) -> float:
        limit = min(PROPAGATION_SECONDS, self._timeout, _timeout_seconds(self._admitted))
        return self._started + limit - time.monotonic()


def _timeout_seconds(admitted: AdmittedRequest) -> float:
    """The time that the client itself gives a list or watch; 0 means none in particular."""
    try:
        return float(admitted.parameters["timeoutSeconds"]) or PROPAGATION_SECONDS
    except (KeyError, ValueError):
        return PROPAGATION_SECONDS


def _has_left(admitted: AdmittedRequest) -> bool:
    """Whether the client has closed its connection. Then nothing more is tried in its name."""
    transport = admitted.request.transport
    return transport is None or transport.is_closing()
