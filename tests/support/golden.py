"""Golden exchanges: the request of each operation as a REST client sends it, and its reply, in `tests/contract/golden`.

They go through the entrance of the real plane. A value that differs from run to run is replaced by its kind in angle
brackets; this module decides which. A changed reply is a change for every client. If it is intended,
`KAIRSHIP_WRITE_GOLDEN=1 pytest …` writes the files again, and the commit shows the difference.
"""

import json
import os
import re
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from difflib import unified_diff
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

from support.entrance import METHODS, Client
from support.not_yet import NotYet
from support.waiting import eventually

FOLDER = Path(__file__).parent.parent / "contract" / "golden"
WRITE = "KAIRSHIP_WRITE_GOLDEN"
SYNCED, BEGAN = {"type": "WATCH_EVENT_TYPE_SYNCED"}, {"change": "OBJECT_CHANGE_BEGAN"}
"""Fields of the event that ends the initial events of a watch."""
MODIFIED = "WATCH_EVENT_TYPE_MODIFIED"

_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d[.\d]*(Z|[+-]\d\d:\d\d)| \d\d:\d\d UTC)")
_PORT = re.compile(r"127\.0\.0\.1:\d+")
_IDENTIFIER = re.compile(r"\b[a-z]{1,2}-[0-9a-f]{20}\b")
"""Identifiers of global management."""
_NUMBER = re.compile(r"/(folders|workspaces)/\d+")
_RANDOM = re.compile(r"(-[2456789bcdfghjklmnpqrstvwxz]{5,10})+\b")
"""The random suffixes of names that Kubernetes generates."""
_CHANGING = {
    "resourceVersion": "<version>",
    "creationTimestamp": "<time>",
    "deletionTimestamp": "<time>",
    "lastTransitionTime": "<time>",
    "startTime": "<time>",
    "pod-template-hash": "<random>",
    "nodeName": "<node>",
    "topology.kubernetes.io/zone": "<zone>",
    "workspaceId": "<id>",
    "podIP": "<ip>",
    "ip": "<ip>",
    "token": "<secret>",
    "refreshToken": "<secret>",
    "csrfToken": "<secret>",
    "deviceCode": "<secret>",
    "userCode": "<secret>",
    "secret": "<secret>",
    "hint": "<secret>",
    "authorizationUrl": "<address>",
    "createdAt": "<time>",
    "expiresAt": "<time>",
    "lastLoginAt": "<time>",
    "lastUsedAt": "<time>",
    "at": "<time>",
    "sequence": "<number>",
    "requestId": "<random>",
    "certificate-authority-data": "<secret>",
    "client-certificate-data": "<secret>",
    "client-key-data": "<secret>",
}
_SECRET = re.compile(r"-----BEGIN|LS0tLS1|eyJ")
"""A part of every certificate, key and token of the plane."""

JSON = Any


def operations() -> set[str]:
    """Returns the operations that have a golden file."""
    return {path.stem for path in FOLDER.glob("*.json")}


class RoundTripper:
    def __init__(self, client: Client, variables: dict[str, str], names: dict[str, str]) -> None:
        self.done: set[str] = set()
        self._client = client
        self._variables = variables
        self._names = names

    async def __call__(
        self,
        operation: str,
        /,
        *,
        query: dict[str, str] | None = None,
        body: JSON = None,
        only: Callable[[JSON], bool] | None = None,
        varying: frozenset[str] = frozenset(),
        when: Callable[[JSON], bool] | None = None,
        by: Client | None = None,
        given: frozenset[str] = frozenset(),
        **variables: str,
    ) -> JSON:
        """Sends the request, compares the exchange with its golden file, and returns the reply.

        `variables` are those of the path. `by` is another caller than the usual one. `only` selects the test's own
        items of a list that other tests change too. `varying` are fields of the reply, and `given` fields of the
        request, that differ in each run. `when` repeats the request until it is true of the reply.
        """
        method = METHODS[operation]
        route = method.routes[0]
        values = self._variables | variables
        path = re.sub(r"{(.+?)}", lambda found: quote(values[found[1]], safe=""), route.template)
        ask = self._downloaded if method.download else self._watched if method.streams else self._answered
        reply: JSON = None

        async def answered() -> NotYet | bool:
            nonlocal reply
            reply = await ask(by or self._client, route.verb, path, query or {}, body)
            return when is None or when(reply) or NotYet(reply)

        await eventually(answered, f"the reply to {operation}")
        request = {"method": route.verb, "path": path, "query": query, "body": body}
        shown = {
            "request": self._normalised({key: part for key, part in request.items() if part is not None}, given),
            "reply": self._normalised(_selected(reply, only) if only else reply, varying),
        }
        _compare(operation, shown)
        self.done.add(operation)
        return reply

    async def _answered(self, client: Client, verb: str, path: str, query: dict[str, str], body: JSON) -> JSON:
        reply = await client.request(verb, path, body, params=query)
        assert reply.status == 200, reply.body
        assert "Warning" not in reply.headers, f"a part of the request was ignored: {reply.headers['Warning']}"
        return reply.json

    async def _watched(self, client: Client, verb: str, path: str, query: dict[str, str], body: JSON) -> JSON:
        """Returns the initial events of a watch, or all events of another stream.

        Events of the type MODIFIED are left out: whether one comes depends on when a controller writes.
        """
        events = []
        async with client.rest.request(verb, path, params=query, headers=client.headers) as reply:
            assert reply.status == 200, await reply.text()
            async for line in reply.content:
                if line.startswith(b"data: "):
                    event = json.loads(line.removeprefix(b"data: "))
                    if event.get("type") != MODIFIED:
                        events.append(event)
                    if any(mark.items() <= event.items() for mark in (SYNCED, BEGAN)):
                        break
        return events

    async def _downloaded(self, client: Client, verb: str, path: str, query: dict[str, str], body: JSON) -> JSON:
        """Returns the lines of a file."""
        reply = await client.request(verb, path, body, params=query)
        assert reply.status == 200, reply.body
        return reply.body.decode().splitlines()

    def _normalised(self, value: JSON, varying: frozenset[str]) -> JSON:
        match value:
            case dict():
                return {key: self._normalised_part(key, part, varying) for key, part in value.items()}
            case list():
                return [self._normalised(part, varying) for part in value]
            case str() if value.startswith("{"):
                return json.dumps(self._normalised(json.loads(value), varying), sort_keys=True)
            case str() if value.startswith("apiVersion:"):
                return yaml.safe_dump(self._normalised(yaml.safe_load(value), varying), sort_keys=False)
            case str():
                for stands_for, name in self._names.items():
                    value = value.replace(name, f"<{stands_for}>")
                value = _NUMBER.sub(r"/\1/<number>", _UID.sub("<uid>", _IDENTIFIER.sub("<id>", value)))
                return _RANDOM.sub("-<random>", _PORT.sub("<address>", _TIME.sub("<time>", value)))
            case _:
                return value

    def _normalised_part(self, key: str, part: JSON, varying: frozenset[str]) -> JSON:
        if key in varying:
            return "<varies>"
        if key in _CHANGING and isinstance(part, str | int) and part not in ("", "0", 0):
            return _CHANGING[key]
        return self._normalised(part, varying)


@asynccontextmanager
async def exchanges(
    client: Client,
    *services: str,
    variables: dict[str, str],
    names: dict[str, str],
    elsewhere: Collection[str] = (),
) -> AsyncIterator[RoundTripper]:
    """Asserts at the end that every golden file of these services was compared.

    `variables` are those of most paths. `names` maps placeholders in the files to names of this run. `elsewhere` are
    operations that another test compares.
    """
    found = RoundTripper(client, variables, names)
    yield found
    kept = {each for each in operations() if each.partition(".")[0] in services} - set(elsewhere)
    assert kept == found.done, f"golden files that are not of any exchange: {sorted(kept - found.done)}"


def _selected(reply: JSON, only: Callable[[JSON], bool]) -> JSON:
    if isinstance(reply, list):
        return [part for part in reply if only(part)]
    return {
        key: [each for each in part if only(each)] if isinstance(part, list) else part for key, part in reply.items()
    }


def _compare(operation: str, found: JSON) -> None:
    text = json.dumps(found, indent=2, ensure_ascii=False) + "\n"
    assert not _SECRET.search(text), f"the exchange of {operation} has a secret in it"
    path = FOLDER / f"{operation}.json"
    if os.environ.get(WRITE):
        path.write_text(text)
    assert path.exists(), f"there is no {path.name}: write it with {WRITE}=1"
    difference = "\n".join(unified_diff(path.read_text().splitlines(), text.splitlines(), "kept", "found", lineterm=""))
    assert not difference, f"the exchange of {operation} is not as it was:\n{difference}"
