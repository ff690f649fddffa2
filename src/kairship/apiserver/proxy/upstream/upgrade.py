"""Forwards exec, attach and port-forward: the connection stops being HTTP, if the server agrees."""

import asyncio
from collections.abc import Callable

from aiohttp import web

from kairship.apiserver.flowcontrol.limits import Limits
from kairship.apiserver.proxy.reply import replies
from kairship.apiserver.proxy.request import headers
from kairship.apiserver.proxy.request.admitted import AdmittedRequest
from kairship.apiserver.proxy.request.authorisation import ProxyAuthoriser
from kairship.apiserver.proxy.upstream.circuit_breaker import CircuitBreakers
from kairship.apiserver.proxy.upstream.late_grants import GrantRetries
from kairship.apiserver.proxy.upstream.tunnel import Tunnel
from kairship.kube import Client, Upgraded, UpgradeRefused
from kairship.rpc.errors import Unavailable

_LAST_BYTES_SECONDS = 5.0
"""Seconds for the last bytes of a tunnel that has ended."""


class UpgradeForwarder:
    def __init__(
        self,
        connect: Callable[[AdmittedRequest], Client],
        *,
        authoriser: ProxyAuthoriser,
        breakers: CircuitBreakers,
        limits: Limits,
    ) -> None:
        """`connect` gives the instance's client, as the caller."""
        self._connect = connect
        self._authoriser = authoriser
        self._breakers = breakers
        self._limits = limits

    async def forward(self, admitted: AdmittedRequest) -> web.StreamResponse:
        """Returns when the tunnel has ended, or with the server's reply if the server does not agree."""
        answer = await self._upgrade(admitted)
        if isinstance(answer, UpgradeRefused):
            return replies.refused_upgrade(answer, admitted.envelope.request_id)
        transport = admitted.request.transport
        if transport is None or transport.is_closing():
            answer.abort()
            raise Unavailable("the client closed the connection before the upgrade")
        tunnel = Tunnel(admitted.request.protocol)
        try:
            returned = headers.upgrade_response_headers(answer.headers, admitted.request.headers["Upgrade"])
            transport.write(replies.switching_protocols(returned))
            transport.set_protocol(tunnel.client_side)
            tunnel.client_side.connection_made(transport)
            answer.hand_over(tunnel.server_side)
            await tunnel.ended.wait()
        except BaseException:
            tunnel.abort()
            raise
        asyncio.get_running_loop().call_later(_LAST_BYTES_SECONDS, tunnel.abort)
        return web.Response(status=101)

    async def _upgrade(self, admitted: AdmittedRequest) -> Upgraded | UpgradeRefused:
        forwarded = headers.upgrade_request_headers(admitted.request.headers)
        forwarded["X-Request-Id"] = admitted.envelope.request_id
        retries = GrantRetries(self._authoriser, admitted, timeout=self._limits.read_seconds)
        while True:
            client = self._connect(admitted)
            with self._breakers.guarding(admitted.line.destination) as guarded:
                answer = await client.upgrade(
                    admitted.request.method, admitted.upstream_path, headers=forwarded, timeout=retries.timeout
                )
                guarded.record_success()
            if not isinstance(answer, UpgradeRefused) or answer.status != 403 or not admitted.authorisation.granted:
                return answer
            if not retries.may_follow(answer.body):
                return answer
            await retries.pause()
