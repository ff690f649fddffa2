"""Maps each method of the API to the service object or the backend that answers it.

A service is a plain object; there is one class per service of the protos. A method of the proto is a coroutine of it
with the name in snake_case; a method that streams its replies is an async generator:

    async def get_instance(self, request: GetInstanceRequest, call: Call) -> Instance
    async def watch_instances(self, request: WatchInstancesRequest, call: Call) -> AsyncIterator[WatchInstancesResponse]

The registry checks the services when it is made: a public coroutine that corresponds to no method, or to a method of
the other form, is a mistake that would otherwise go unnoticed. A method without a coroutine is forwarded to the backend
that owns its package, or answers UNIMPLEMENTED.
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


class Backend(Protocol):
    """A process behind the entrance that answers the methods of some packages."""

    async def unary(self, method: Method, request: Message[Any], call: Call) -> Message[Any]: ...

    def stream(self, method: Method, request: Message[Any], call: Call) -> AsyncGenerator[Message[Any], None]: ...


class ServiceRegistry:
    """The handler of every method."""

    def __init__(
        self, services: Mapping[str, object], *, backends: Mapping[str, Backend] = MappingProxyType({})
    ) -> None:
        """`services` has the objects by the full name of the service that each implements: kairship.v1alpha1.Instance.

        `backends` has the backends by the package that each owns: kairship.ghippo.v1alpha1.
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
        for package, backend in backends.items():
            self._forward_to(backend, package)

    def _add(self, name: str, service: object, offered: Mapping[str, Method]) -> None:
        # A mapping has handlers by method name (see `operation_table`); any other object has them as its own methods.
        handlers = service.items() if isinstance(service, Mapping) else inspect.getmembers(service, callable)
        functions: list[tuple[str, Any]] = list(handlers)
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

    def _forward_to(self, backend: Backend, package: str) -> None:
        for method in methods().values():
            if _service_of(method).rpartition(".")[0] != package:
                continue
            if method.streams:
                self._streaming.setdefault(method.path, partial(backend.stream, method))
            else:
                self._unary.setdefault(method.path, partial(backend.unary, method))

    def unary(self, method: Method) -> Unary | None:
        return self._unary.get(method.path)

    def streaming(self, method: Method) -> Streaming | None:
        return self._streaming.get(method.path)

    def unimplemented(self) -> list[Method]:
        """The methods that have no handler."""
        return [method for path, method in methods().items() if path not in self._unary and path not in self._streaming]


def _service_of(method: Method) -> str:
    return method.path[1:].rpartition("/")[0]


def _plain(name: str) -> str:
    """Makes CamelCase and snake_case equal: GetFederatedHPAJSON and get_federated_hpa_json."""
    return name.replace("_", "").lower()
