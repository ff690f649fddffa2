"""Requests that are passed on to the instance in the caller's name, and what comes back.

Replies are passed on as they come, piece by piece: a slow reader slows its source, and nothing is held here but the
short replies to writes, until they are noted. Redirects are not followed and not passed on.
"""

import time
from collections.abc import AsyncGenerator, Callable

from aiohttp import web
from multidict import CIMultiDict

from kairship.apiserver.limits import Limits
from kairship.apiserver.proxy import headers, replies
from kairship.apiserver.proxy.auditing import Begun
from kairship.apiserver.proxy.noting import NotedWrites
from kairship.apiserver.proxy.passing import Passing
from kairship.apiserver.proxy.sending import Sender, chained, gathered
from kairship.apiserver.proxy.silence import Silences
from kairship.kube import Client, Stream
from kairship.rpc.errors import Unavailable

_LARGEST = 8 << 20
"""Bytes of a reply that are held to be read. No object is larger."""
_AT_ONCE = 128 * 1024
"""Bytes of a reply that go in one piece, whoever reads them."""


class Forwarding:
    def __init__(
        self,
        connect: Callable[[Passing], Client],
        *,
        writes: NotedWrites,
        silences: Silences,
        sender: Sender,
        limits: Limits,
    ) -> None:
        self._connect = connect
        self._writes = writes
        self._silences = silences
        self._sender = sender
        self._limits = limits

    async def pass_on(self, passing: Passing, body: bytes, begun: Begun | None) -> web.StreamResponse:
        """Nothing of a reply is sent before it is on the disk who caused it."""
        client = self._connect(passing)
        going = headers.going_there(passing.request.headers)
        going["X-Request-Id"] = passing.envelope.request_id
        noted = self._writes.concerns(passing)
        if noted:
            going["Accept-Encoding"] = "identity"  # what it says has to be read
        asked_at = time.monotonic()
        # A watch that is to begin with what there is may take its time to begin.
        patience = self._limits.write_seconds if passing.line.lasts else self._limits.read_seconds
        with self._silences.listening(passing.line.place) as place:
            async with client.stream(
                passing.request.method,
                passing.upstream,
                body=body if passing.request.body_exists else None,
                headers=going,
                timeout=patience,
            ) as upstream:
                place.said(upstream.status, time.monotonic() - asked_at)
                if 300 <= upstream.status < 400 and upstream.status != 304:
                    raise Unavailable("the cluster behind this answered with a redirect, which is not followed")
                pieces = upstream.chunks(inactivity_timeout=passing.longest_silence)
                if noted and upstream.status < 300:
                    return await self._note(passing, upstream, pieces, begun)
                if begun is not None:
                    await begun.on_disk()
                response = web.StreamResponse(status=upstream.status, headers=_marked(passing, upstream))
                return await self._sender.send(passing.request, response, pieces)

    async def _note(
        self, passing: Passing, upstream: Stream, pieces: AsyncGenerator[bytes], begun: Begun | None
    ) -> web.StreamResponse:
        """Writers are answered when what they wrote is noted, so that they read it next."""
        held, size = await gathered(pieces, _LARGEST + 1)
        is_whole = size <= _LARGEST
        is_json = upstream.headers.get("Content-Type", "").startswith("application/json")
        back = _marked(passing, upstream)
        if not await self._writes.note(passing, b"".join(held) if is_whole and is_json else None):
            back.add("Warning", replies.NOT_NOTED)
        if begun is not None:
            await begun.on_disk()
        if size <= _AT_ONCE:
            whole = replies.whole(passing.request, upstream.status, back, b"".join(held))
            return await self._sender.send_whole(passing.request, whole, size)
        response = web.StreamResponse(status=upstream.status, headers=back)
        return await self._sender.send(passing.request, response, chained(held, pieces))


def _marked(passing: Passing, upstream: Stream) -> CIMultiDict[str]:
    back = headers.coming_back(upstream.headers)
    replies.mark(back, passing.envelope.request_id)
    return back
