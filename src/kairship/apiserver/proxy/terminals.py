"""exec, attach and port-forward: connections that stop being HTTP, if the server behind agrees."""

import asyncio
from collections.abc import Callable

from aiohttp import web

from kairship.apiserver.limits import Limits
from kairship.apiserver.proxy import headers, replies
from kairship.apiserver.proxy.passing import Passing
from kairship.apiserver.proxy.silence import Silences
from kairship.apiserver.proxy.tunnel import Tunnel
from kairship.kube import Client, Refused
from kairship.rpc.errors import Unavailable

_LAST_WORDS = 5.0


class Terminals:
    def __init__(self, connect: Callable[[Passing], Client], *, silences: Silences, limits: Limits) -> None:
        self._connect = connect
        self._silences = silences
        self._limits = limits

    async def join(self, passing: Passing) -> web.StreamResponse:
        """Returns when it has ended, or with what the server says instead."""
        client = self._connect(passing)
        going = headers.upgrade_going_there(passing.request.headers)
        going["X-Request-Id"] = passing.envelope.request_id
        with self._silences.listening(passing.line.place) as place:
            answer = await client.upgrade(
                passing.request.method, passing.upstream, headers=going, timeout=self._limits.read_seconds
            )
            place.answered()
        if isinstance(answer, Refused):
            return replies.refused_upgrade(answer, passing.envelope.request_id)
        near = passing.request.transport
        if near is None or near.is_closing():
            answer.abort()
            raise Unavailable("the caller went away")
        tunnel = Tunnel(passing.request.protocol)
        try:
            back = headers.upgrade_coming_back(answer.headers, passing.request.headers["Upgrade"])
            near.write(replies.switching(back))
            near.set_protocol(tunnel.near)
            tunnel.near.connection_made(near)
            answer.hand_over(tunnel.far)
            await tunnel.ended.wait()
        except BaseException:
            tunnel.abort()
            raise
        asyncio.get_running_loop().call_later(_LAST_WORDS, tunnel.abort)
        return web.Response(status=101)
