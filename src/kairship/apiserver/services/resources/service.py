"""A service whose methods follow from the kinds that it is about.

The names of methods are regular: `ListDeployments`, `GetDeploymentJSON`, `PauseDeployment`. Each is matched with a kind
and an operation; a method that matches none is either written by hand in a subclass or answers UNIMPLEMENTED.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any

from protobuf import Message

from kairship.apiserver.services.resources.kind import Kind
from kairship.apiserver.services.resources.operations import Operations
from kairship.apiserver.services.resources.watching import Following
from kairship.rpc.calls import Call
from kairship.wire import Method, methods

Operation = Callable[[Kind, Method, Any, Call], Awaitable[Message[Any]]]


class ResourceService:
    """kairship.v1alpha1.`name`."""

    def __init__(self, name: str, kinds: Sequence[Kind], operations: Operations) -> None:
        self._operations = operations
        by_name = {method.name: method for method in methods().values() if method.service == name}
        for kind in kinds:
            for method_name, operation in _operations_of(kind, operations):
                if method := by_name.get(method_name):
                    setattr(self, _snake_case(method_name), _unary(operation, kind, method))
            if method := by_name.get(f"Watch{kind.plural}"):
                setattr(self, _snake_case(method.name), _streaming(operations, kind, method))


def _operations_of(kind: Kind, operations: Operations) -> Iterator[tuple[str, Operation]]:
    """The methods that there could be for a kind, with what they do."""
    for scope in ("", "Instance", "MemberCluster", "MemberClusterAll"):
        yield f"List{scope}{kind.plural}", operations.page
    yield f"Get{kind.singular}", operations.get
    yield f"Get{kind.singular}JSON", operations.get_json
    yield f"Create{kind.singular}", operations.create
    yield f"Update{kind.singular}", operations.update
    yield f"Patch{kind.singular}", operations.patch
    yield f"Delete{kind.singular}", operations.delete
    for word, action in kind.actions.items():
        yield f"{word}{kind.singular}", partial(operations.act, action)


def _unary(operation: Operation, kind: Kind, method: Method) -> Callable[[Any, Call], Awaitable[Message[Any]]]:
    async def handle(request: Any, call: Call) -> Message[Any]:
        return await operation(kind, method, request, call)

    return handle


def _streaming(
    operations: Operations, kind: Kind, method: Method
) -> Callable[[Any, Call], AsyncIterator[Message[Any]]]:
    async def handle(request: Any, call: Call) -> AsyncIterator[Message[Any]]:
        async with aclosing(Following(operations, kind, method, request, call).events()) as events:
            async for event in events:
                yield event

    return handle


def _snake_case(name: str) -> str:
    """GetDeploymentJSON, get_deployment_json."""
    words = "".join(
        f"_{letter}" if letter.isupper() and not name[index - 1].isupper() else letter
        for index, letter in enumerate(name)
        if index
    )
    return f"{name[0]}{words}".lower()
