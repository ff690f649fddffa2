"""The services of the API over the shared plane, called as the entrance calls them.

They act as the account of the apiserver in the global cluster, so every test shows that its rights are enough.
Requests are held to the rules of the protos, as the entrance does.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, TypeVar

import psutil
import pytest
from protobuf import Message

from kairship.apiserver import rbac
from kairship.apiserver.services import EXTERNAL, Offer, Services
from kairship.embedded import EmbeddedPlane
from kairship.instances.pool import NotConnected, Pool, PoolSettings
from kairship.kube import Client, NotFound
from kairship.reconcile import Metrics, SystemClock
from kairship.resources import DriverName
from kairship.rpc.calls import Call, Caller
from kairship.rpc.errors import ApiError, Code, of_exception
from kairship.rpc.registry import Owner, Registry
from kairship.rpc.sight import EVERYTHING
from kairship.wire import methods, violations
from support.instance_rights import grant
from support.our_kinds import SERVED
from support.own_global import identity
from support.waiting import PATIENCE

INSTANCE = SERVED["Instance"]
OFFERS = (Offer(DriverName.LOCAL, ("v1.18.2", "v1.18.1")), EXTERNAL)
ALICE = Caller(id="alice", name="Alice")

M = TypeVar("M", bound=Message[Any])

_QUICK = PoolSettings(probe_interval=0.5, retry_interval=0.1, grace=1.0)
_METHODS = {f"{method.service}.{method.name}": method for method in methods().values()}


class Api:
    """Calls methods by their names."""

    def __init__(self, registry: Registry, world: Client, pool: Pool) -> None:
        self.world = world
        """A client with every right in the global cluster."""
        self.pool = pool
        self.warnings: list[str] = []
        """Of the last call."""
        self.age: float | None = None
        """Of what the last call read; 0 if a cluster itself was asked."""
        self.caller = ALICE
        self.sight = EVERYTHING
        """What the next calls are about."""
        self._registry = registry

    async def __call__(self, name: str, reply: type[M], /, **fields: Any) -> M:
        """`name` is Service.Method. Errors are those that a caller is told."""
        method, call, request = self._prepare(name, fields)
        handler = self._registry.unary(method)
        assert handler is not None, f"{name} is not implemented"
        try:
            found = await handler(request, call)
        except Exception as error:
            told = of_exception(error, request_id="test")
            if told is error:
                raise
            raise told from error
        finally:
            self.warnings, self.age = call.warnings, call.data_age
        assert isinstance(found, reply)
        return found

    def watch(self, name: str, /, **fields: Any) -> Any:
        method, call, request = self._prepare(name, fields)
        handler = self._registry.streaming(method)
        assert handler is not None, f"{name} is not implemented"
        return handler(request, call)

    def _prepare(self, name: str, fields: dict[str, Any]) -> tuple[Any, Call, Any]:
        method = _METHODS[name]
        deadline = time.monotonic() + PATIENCE
        call = Call(request_id="test", caller=self.caller, method=method, deadline=deadline, sight=self.sight)
        request = method.request(**fields)
        assert not list(violations(request)), "the entrance would refuse this"
        return method, call, request

    async def instance(self, name: str = "demo") -> Client:
        """A client with every right in an instance."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return self.pool.instance(name)
            except NotConnected:
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.05)


@contextmanager
def refused(code: Code, match: str | None = None) -> Iterator[pytest.ExceptionInfo[ApiError]]:
    """That the block ends with an error that the caller is told under this code."""
    with pytest.raises(ApiError, match=match) as caught:
        yield caught
    assert caught.value.code is code, f"{caught.value.code.name}: {caught.value.message}"


async def discard(world: Client, name: str) -> None:
    """Delete an instance that nobody has a driver for, whatever still holds on to it."""
    await world.delete(INSTANCE, name, missing_ok=True)
    with suppress(NotFound):  # once it is being deleted, nobody holds on to it anew
        await world.patch(INSTANCE, name, {"metadata": {"finalizers": None}})


@asynccontextmanager
async def services_of(plane: EmbeddedPlane, *, ghippo: Owner | None = None) -> AsyncIterator[Api]:
    """Everything that serves, until the end of the block."""
    connection = await plane.global_connection()
    async with (
        _leaving_no_connection(),
        Client(connection) as world,
        Client(await identity(connection, rbac.ACCOUNT)) as client,
    ):
        metrics, clock = Metrics(), SystemClock()
        pool = Pool(client, clock=clock, metrics=metrics, settings=_QUICK)
        services = Services(client, pool, clock=clock, metrics=metrics, offers=OFFERS, ghippo=ghippo)
        api = Api(Registry(services.by_name()), world, pool)
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(pool.run()), tasks.create_task(services.run())]
            await services.wait_synced()
            await pool.wait_synced()
            await grant(await api.instance(), ALICE.id)
            yield api
            for task in running:
                task.cancel()


@asynccontextmanager
async def _leaving_no_connection() -> AsyncIterator[None]:
    """TLS takes a moment to end after a stream was left, and the event loop must not end before."""

    def open_now() -> set[tuple[str, ...]]:
        return {tuple(map(str, each.laddr)) for each in psutil.Process().net_connections("tcp")}

    before = open_now()
    yield

    async def closed() -> bool | None:
        return None if open_now() - before else True

    await until(closed, what="the end of all connections")


async def until(condition: Any, *, what: str, timeout: float = PATIENCE) -> Any:
    """What `condition` returns once it is not None. Errors of it are no answer."""
    deadline = time.monotonic() + timeout
    while (found := await condition()) is None:
        if time.monotonic() > deadline:
            pytest.fail(f"{what} did not come about within {timeout:g} s")
        await asyncio.sleep(0.05)
    return found
