"""The verbs that read objects: get, list page by page, and watch."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Generic, TypeVar

import msgspec

from kairship.kube.decoding import ListPage, decode_list
from kairship.kube.endpoint import Endpoint
from kairship.kube.http.transport import RawResponse
from kairship.kube.resource import Resource
from kairship.kube.watching import WatchEvent, lines, parse

T = TypeVar("T")

# A server ends a watch by itself after `server_timeout`. A server that stays silent this much longer is gone.
_GRACE = 30.0
_LONGEST_REFUSAL = 256 << 10


class Reader(Endpoint, Generic[T]):
    """The verbs that change nothing. Objects are decoded as `T` (see `decoding`)."""

    _shape: type[T]

    async def get(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        timeout: float | None = None,
    ) -> T:
        """Returns one object."""
        path = resource.path(namespace=namespace, name=name)
        return self._decode(f"GET {path}", await self._call("GET", path, timeout=timeout), self._shape)

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        limit: int | None = None,
        continue_token: str | None = None,
        resource_version: str | None = None,
        timeout: float | None = None,
    ) -> ListPage[T]:
        """Returns one page, which holds everything unless there is a `limit`. Without `namespace` it lists all of them.

        `resource_version`: None reads the latest state, "0" whatever the server has in its cache, and any other value
        a state that is at least that recent.
        """
        path = resource.path(namespace=namespace)
        params = _query(
            labelSelector=label_selector,
            fieldSelector=field_selector,
            limit=limit,
            # The token holds the revision and the position, and the server refuses a resourceVersion beside it.
            **({"continue": continue_token} if continue_token else {"resourceVersion": resource_version}),
        )
        body = await self._call("GET", path, params=params, timeout=timeout)
        try:
            return decode_list(body, self._shape)
        except msgspec.DecodeError as error:
            raise self._not_understood(f"GET {path}", error) from error

    async def pages(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        limit: int = 500,
        timeout: float | None = None,
    ) -> AsyncGenerator[ListPage[T]]:
        """Yields the whole list in pages of `limit`, all as of one revision. `timeout` is for each page.

        A reader that is slower than the server's memory (five minutes by default) gets `Expired` and has to begin
        again.
        """
        continue_token: str | None = None
        while continue_token != "":
            page = await self.list(
                resource,
                namespace=namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                limit=limit,
                continue_token=continue_token,
                timeout=timeout,
            )
            yield page
            continue_token = page.continue_token

    async def watch(
        self,
        resource: Resource,
        *,
        resource_version: str | None = None,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        bookmarks: bool = True,
        server_timeout: float = 300.0,
        inactivity_timeout: float | None = None,
    ) -> AsyncGenerator[WatchEvent[T]]:
        """Yields the changes after `resource_version`. Wrap it in `aclosing`: leaving it gives its connection back.

        The watch ends when the server ends it in good order, which it does after `server_timeout`: go on from the last
        `resource_version`. A revision that the server no longer has raises `Expired`, in whichever form the server
        says so. A lost connection raises `Disconnected`, and silence for `inactivity_timeout` raises `TimedOut`. By
        default that is a little more than `server_timeout`; less needs a server that sends bookmarks, about one a
        minute. A bookmark is an object without content: `T` must be able to hold one, or `bookmarks` must be off.
        """
        path = resource.path(namespace=namespace)
        call, server = f"GET {path} (watch)", self.connection.server
        params = _query(
            watch="true",
            resourceVersion=resource_version,
            labelSelector=label_selector,
            fieldSelector=field_selector,
            allowWatchBookmarks="true" if bookmarks else None,
            timeoutSeconds=max(1, round(server_timeout)),
        )
        silence = server_timeout + _GRACE if inactivity_timeout is None else inactivity_timeout
        headers = self._headers({})
        async with self._transport.stream("GET", path, params=params, headers=headers, timeout=self._timeout) as stream:
            if stream.status != 200:
                body = await _beginning(stream.chunks(inactivity_timeout=self._timeout))
                self._raise_for_status(call, RawResponse(stream.status, stream.headers, body), headers)
            async with (
                aclosing(stream.chunks(inactivity_timeout=silence)) as chunks,
                aclosing(lines(chunks, call=call, server=server, held=stream.held)) as events,
            ):
                async for line in events:
                    yield parse(line, self._shape, call=call, server=server)


async def _beginning(chunks: AsyncGenerator[bytes]) -> bytes:
    """The body of a refusal. A server that goes on for longer is not listened to."""
    body = bytearray()
    async with aclosing(chunks):
        async for chunk in chunks:
            body += chunk
            if len(body) > _LONGEST_REFUSAL:
                break
    return bytes(body[:_LONGEST_REFUSAL])


def _query(**params: str | int | None) -> dict[str, str]:
    return {name: str(value) for name, value in params.items() if value is not None}
