"""Tables that say which operation serves which method of a proto service.

A service of objects is a constant table, so that a search for the name of a method finds what serves it:

    APPS: OperationTable = {
        "ListDeployments": List(DEPLOYMENTS),
        "PauseDeployment": PatchWith(DEPLOYMENTS, pause),
        "PromoteMemberClusterDeployment": promote_deployment,
    }

An operation is any callable that takes the access to objects, the request and the call. Those in `operations` and
`watch` are made from a `Kind`; a method that fits none of them is served by a function of its own. Such a function may
use operations itself. A kind that only the request knows is one example:

    async def get_custom_resource(access: ObjectAccess, request: GetCustomResourceRequest, call: Call) -> Message[Any]:
        return await Get(await kind_of(access, request, call))(access, request, call)

`bind_operations` checks a table when the process starts: each name must be a method of the service, and each operation
must fit the messages of its method. A method that is in no table answers UNIMPLEMENTED.
"""

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, TypeAlias, cast

from protobuf import Message

from kairship.apiserver.services.resources.object_access import ObjectAccess
from kairship.apiserver.services.resources.operations import KindOperation
from kairship.rpc.calls import Call
from kairship.rpc.service_registry import RegistryError, Streaming, Unary
from kairship.wire import methods

UnaryOperation: TypeAlias = Callable[[ObjectAccess, Any, Call], Awaitable[Message[Any]]]
StreamingOperation: TypeAlias = Callable[[ObjectAccess, Any, Call], AsyncGenerator[Message[Any], None]]
OperationTable: TypeAlias = Mapping[str, UnaryOperation | StreamingOperation]
"""Operations by the name of the method that they serve, as the proto spells it."""


def bind_operations(service: str, table: OperationTable, access: ObjectAccess) -> dict[str, Unary | Streaming]:
    """Returns the handlers of `service` (kairship.v1alpha1.Apps) by method name, as `ServiceRegistry` takes them.

    Raises `RegistryError` for a name that is no method, and for an operation that does not fit its method.
    """
    handlers: dict[str, Unary | Streaming] = {}
    for name, operation in table.items():
        method = methods().get(f"/{service}/{name}")
        if method is None:
            raise RegistryError(f"{service} has no method {name}: correct the name in the operation table")
        if isinstance(operation, KindOperation) and (reason := operation.mismatch(method)):
            raise RegistryError(f"{type(operation).__name__} cannot serve {method.path}: {reason}")
        if _is_streaming(operation) != method.streams:
            needed = "an async generator" if method.streams else "a coroutine function"
            raise RegistryError(f"{method.path} needs {needed}")
        if method.streams:
            handlers[name] = _streaming_handler(cast("StreamingOperation", operation), access)
        else:
            handlers[name] = _unary_handler(cast("UnaryOperation", operation), access)
    return handlers


def _is_streaming(operation: UnaryOperation | StreamingOperation) -> bool:
    return inspect.isasyncgenfunction(operation) or inspect.isasyncgenfunction(type(operation).__call__)


def _unary_handler(operation: UnaryOperation, access: ObjectAccess) -> Unary:
    async def handle(request: Any, call: Call) -> Message[Any]:
        return await operation(access, request, call)

    return handle


def _streaming_handler(operation: StreamingOperation, access: ObjectAccess) -> Streaming:
    async def handle(request: Any, call: Call) -> AsyncGenerator[Message[Any], None]:
        async with aclosing(operation(access, request, call)) as replies:
            async for reply in replies:
                yield reply

    return handle
