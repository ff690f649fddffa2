"""Which object answers which method of the API.

A service is a plain object, one class per service of the protos. A method of the proto is a coroutine of it, named in
snake_case; one that streams its replies is an async generator:

    async def get_instance(self, request: GetInstanceRequest, call: Call) -> Instance
    async def watch_instances(self, request: WatchInstancesRequest, call: Call) -> AsyncIterator[WatchInstancesResponse]

The registry is checked when it is made: what is public in a service and corresponds to no method, or to one of the
other kind, is a mistake that nobody would find otherwise. A method without a coroutine is passed on to the role that
owns its package, or answers UNIMPLEMENTED.
"""

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

from protobuf import Message

from kairship.rpc.calls import Call
from kairship.wire import Method, internal_methods, methods

Unary: TypeAlias = Callable[[Any, Call], Awaitable[Message[Any]]]
Streaming: TypeAlias = Callable[[Any, Call], AsyncGenerator[Message[Any], None]]


class RegistryError(Exception):
    """A service does not fit the protos."""


class Owner(Protocol):
    """A role that answers elsewhere."""

    async def unary(self, method: Method, request: Message[Any], call: Call) -> Message[Any]: ...

    def stream(self, method: Method, request: Message[Any], call: Call) -> AsyncGenerator[Message[Any], None]: ...


class Registry:
    def __init__(self, services: Mapping[str, object], *, owners: Mapping[str, Owner] = MappingProxyType({})) -> None:
        """`services` are objects by the full names of what they implement: kairship.v1alpha1.Instance.

        `owners` are the roles behind this one, by the packages that are theirs: kairship.ghippo.v1alpha1.
        """
        self._unary: dict[str, Unary] = {}
        self._streaming: dict[str, Streaming] = {}
        by_service: dict[str, dict[str, Method]] = {}
        for method in (*methods().values(), *internal_methods().values()):
            by_service.setdefault(_service_of(method), {})[_plain(method.name)] = method
        for name, service in services.items():
            if name not in by_service:
                raise RegistryError(f"there is no service {name}; there are {', '.join(by_service)}")
            self._add(name, service, by_service[name])
        for package, owner in owners.items():
            self._leave_to(owner, package)

    def _add(self, name: str, service: object, offered: Mapping[str, Method]) -> None:
        functions: list[tuple[str, Any]] = inspect.getmembers(service, callable)
        for attribute, function in functions:
            streams, awaits = inspect.isasyncgenfunction(function), inspect.iscoroutinefunction(function)
            if attribute.startswith("_") or not (streams or awaits):
                continue
            method = offered.get(_plain(attribute))
            where = f"{type(service).__name__}.{attribute}"
            if method is None:
                raise RegistryError(f"{where} corresponds to no method of {name}; make it private or rename it")
            if method.streams != streams:
                kind = "an async generator" if method.streams else "a coroutine"
                raise RegistryError(f"{where} must be {kind}, as {method.path} says")
            if method.path in self._unary or method.path in self._streaming:
                raise RegistryError(f"{where}: {method.path} is implemented twice")
            if streams:
                self._streaming[method.path] = function
            else:
                self._unary[method.path] = function

    def _leave_to(self, owner: Owner, package: str) -> None:
        for method in methods().values():
            if _service_of(method).rpartition(".")[0] != package:
                continue
            if method.streams:
                self._streaming.setdefault(method.path, partial(owner.stream, method))
            else:
                self._unary.setdefault(method.path, partial(owner.unary, method))

    def unary(self, method: Method) -> Unary | None:
        return self._unary.get(method.path)

    def streaming(self, method: Method) -> Streaming | None:
        return self._streaming.get(method.path)

    def unimplemented(self) -> list[Method]:
        """Methods that nobody answers yet."""
        return [method for path, method in methods().items() if path not in self._unary and path not in self._streaming]


def _service_of(method: Method) -> str:
    return method.path[1:].rpartition("/")[0]


def _plain(name: str) -> str:
    """The name without what differs between CamelCase and snake_case: GetFederatedHPAJSON, get_federated_hpa_json."""
    return name.replace("_", "").lower()
