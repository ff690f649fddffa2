"""Reading objects: one, a page, all pages, and their changes."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, TypeVar, overload

import msgspec

from .decoding import ListPage, Object, decode_list
from .endpoint import Endpoint
from .resource import Resource
from .transport import RawResponse
from .watching import WatchEvent, lines, parse

T = TypeVar("T")

# A server ends a watch by itself after `server_timeout`. One that has been silent for this much longer is gone.
_GRACE = 30.0


class Reader(Endpoint):
    """The verbs that change nothing. `as_type` is explained in `decoding`."""

    @overload
    async def get(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        timeout: float | None = None,
    ) -> Object: ...

    @overload
    async def get(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        as_type: type[T],
        timeout: float | None = None,
    ) -> T: ...

    async def get(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        as_type: type[Any] = dict,
        timeout: float | None = None,
    ) -> Any:
        """One object, or its `status`, `scale` …"""
        path = resource.path(namespace=namespace, name=name, subresource=subresource)
        return self._decode(f"GET {path}", await self._call("GET", path, timeout=timeout), as_type)

    @overload
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
    ) -> ListPage[Object]: ...

    @overload
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
        as_type: type[T],
        timeout: float | None = None,
    ) -> ListPage[T]: ...

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
        as_type: type[Any] = dict,
        timeout: float | None = None,
    ) -> ListPage[Any]:
        """One page: everything, unless there is a `limit`. Without a `namespace` of all namespaces.

        `resource_version`: None reads the latest, "0" whatever the server has in its cache, any other at least that.
        """
        path = resource.path(namespace=namespace)
        params = _query(
            labelSelector=label_selector,
            fieldSelector=field_selector,
            limit=limit,
            # The server keeps revision and position in the token and refuses any other word on them.
            **({"continue": continue_token} if continue_token else {"resourceVersion": resource_version}),
        )
        body = await self._call("GET", path, params=params, timeout=timeout)
        try:
            return decode_list(body, as_type)
        except msgspec.DecodeError as error:
            raise self._not_understood(f"GET {path}", error) from error

    @overload
    def pages(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        limit: int = 500,
        resource_version: str | None = None,
        timeout: float | None = None,
    ) -> AsyncGenerator[ListPage[Object]]: ...

    @overload
    def pages(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        limit: int = 500,
        resource_version: str | None = None,
        as_type: type[T],
        timeout: float | None = None,
    ) -> AsyncGenerator[ListPage[T]]: ...

    async def pages(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        limit: int = 500,
        resource_version: str | None = None,
        as_type: type[Any] = dict,
        timeout: float | None = None,
    ) -> AsyncGenerator[ListPage[Any]]:
        """Everything in pages of `limit`, all as of one revision. `timeout` is for each page.

        A reader slower than the server's memory (five minutes by default) gets `Expired` and has to begin again.
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
                resource_version=resource_version,
                as_type=as_type,
                timeout=timeout,
            )
            yield page
            continue_token = page.continue_token

    @overload
    def watch(
        self,
        resource: Resource,
        *,
        resource_version: str | None = None,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        bookmarks: bool = True,
        send_initial_events: bool = False,
        server_timeout: float = 300.0,
        inactivity_timeout: float | None = None,
    ) -> AsyncGenerator[WatchEvent[Object]]: ...

    @overload
    def watch(
        self,
        resource: Resource,
        *,
        resource_version: str | None = None,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        bookmarks: bool = True,
        send_initial_events: bool = False,
        server_timeout: float = 300.0,
        inactivity_timeout: float | None = None,
        as_type: type[T],
    ) -> AsyncGenerator[WatchEvent[T]]: ...

    async def watch(
        self,
        resource: Resource,
        *,
        resource_version: str | None = None,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        bookmarks: bool = True,
        send_initial_events: bool = False,
        server_timeout: float = 300.0,
        inactivity_timeout: float | None = None,
        as_type: type[Any] = dict,
    ) -> AsyncGenerator[WatchEvent[Any]]:
        """The changes after `resource_version`. Wrap it in `aclosing`: leaving it gives its connection back.

        Ends when the server ends it in good order, which it does after `server_timeout`: go on from the last
        `resource_version`. A revision that the server no longer has raises `Expired`, in whichever form the server
        says so. A lost connection raises `Disconnected`, silence for `inactivity_timeout` raises `TimedOut`. By default
        that is a little more than `server_timeout`; less needs a server that sends bookmarks, about one a minute.

        `send_initial_events` begins with what exists as ADDED events, up to a bookmark that says so.
        """
        path = resource.path(namespace=namespace)
        call, server = f"GET {path} (watch)", self.connection.server
        params = _query(
            watch="true",
            resourceVersion=resource_version,
            labelSelector=label_selector,
            fieldSelector=field_selector,
            allowWatchBookmarks="true" if bookmarks or send_initial_events else None,
            sendInitialEvents="true" if send_initial_events else None,
            resourceVersionMatch="NotOlderThan" if send_initial_events else None,
            timeoutSeconds=max(1, round(server_timeout)),
        )
        silence = server_timeout + _GRACE if inactivity_timeout is None else inactivity_timeout
        headers = self._headers({})
        async with self._transport.stream("GET", path, params=params, headers=headers, timeout=self._timeout) as stream:
            if stream.status != 200:
                body = b"".join([chunk async for chunk in stream.chunks(inactivity_timeout=self._timeout)])
                self._raise_for_status(call, RawResponse(stream.status, stream.headers, body), headers)
            async with (
                aclosing(stream.chunks(inactivity_timeout=silence)) as chunks,
                aclosing(lines(chunks, call=call, server=server)) as events,
            ):
                async for line in events:
                    yield parse(line, as_type, call=call, server=server)


def _query(**params: str | int | None) -> dict[str, str]:
    return {name: str(value) for name, value in params.items() if value is not None}
