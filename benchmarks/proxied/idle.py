"""Measures the cost of an idle watch in the entrance: the slope of its memory over many watches."""

import time
from collections.abc import Callable

import msgspec
from lean_client import LeanClient
from proxied.side import Side

from kairship.rpc.native_access import NativeEndpoint

PER_CALLER = 150
"""Watches per user, of which the entrance allows 200."""
_BASE = "/apis/ghippo.io/v1alpha1"
_FIRST, _PASSWORD = "the first password of many", "a password of a benchmark"
_PATIENCE = 60.0


def slope(through: Side, open_one: Callable[[int], LeanClient], count: int) -> float:
    """The KB per watch, between a fifth of the watches and all, so that the cost of the first one does not count."""
    held = [open_one(number) for number in range(count // 5)]
    time.sleep(2.0)
    few = through.memory()
    held += [open_one(number) for number in range(len(held), count)]
    time.sleep(2.0)
    grown = through.memory() - few
    for client in held:
        client.close()
    return grown / (count - count // 5)


def watchers(admin: LeanClient, way: NativeEndpoint, count: int) -> Callable[[int], LeanClient]:
    """Opens the watch of a number, as a user who may open one more."""
    path = f"{way.path}/api/v1/namespaces/default/configmaps"
    listed = msgspec.json.decode(admin.get(path, keep=True).body)
    callers = [admin, *(_person(admin, number) for number in range(-(-count // PER_CALLER) - 1))]
    for caller in callers:
        _until_let_in(caller, path)
    query = f"watch=true&resourceVersion={listed['metadata']['resourceVersion']}"

    def open_one(number: int) -> LeanClient:
        client = callers[number // PER_CALLER].another()
        client.begin(f"{path}?{query}")
        return client

    return open_one


def _person(admin: LeanClient, number: int) -> LeanClient:
    """Creates an administrator for this measurement."""
    name = f"watcher-{number}"
    made = _post(admin, "/users", {"name": name, "password": _FIRST})
    binding = {"subject": {"kind": "USER", "id": made["id"]}, "role": "platform-admin", "target": {"kind": "PLATFORM"}}
    _post(admin, "/bindings", binding)
    first = _signed_in(admin, name, _FIRST)
    _post(first, "/current-user/password", {"oldPassword": _FIRST, "newPassword": _PASSWORD}, verb="PUT")
    return _signed_in(admin, name, _PASSWORD)


def _signed_in(admin: LeanClient, name: str, password: str) -> LeanClient:
    token = _post(admin, "/login", {"name": name, "password": password})["token"]
    return admin.another(Authorization=f"Bearer {token}")


def _post(client: LeanClient, path: str, body: object, *, verb: str = "POST") -> dict[str, str]:
    answer = client.send(verb, _BASE + path, msgspec.json.encode(body), {"Content-Type": "application/json"})
    assert answer.status == 200, (path, answer.body)
    return dict(msgspec.json.decode(answer.body))


def _until_let_in(client: LeanClient, path: str) -> None:
    """Returns when the instance itself accepts the user: the RBAC of a new user arrives a moment later."""
    deadline = time.monotonic() + _PATIENCE
    asking = client.another(**{"Cache-Control": "no-cache"})
    while asking.get(path).status != 200:
        assert time.monotonic() < deadline, "the instance does not accept the new user"
        time.sleep(0.2)
    asking.close()
