"""The services of the API over the shared plane, called as the entrance calls them.

They use the service account of the apiserver in the global cluster, so every test shows that its rights suffice.
Requests are validated against the rules of the protos, as in the entrance.
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
from kairship.apiserver.auth.impersonation import person_inside
from kairship.apiserver.services import EXTERNAL, AvailableDriver, Services
from kairship.apiserver.services.instance_clients import MemberResource
from kairship.embedded import EmbeddedPlane
from kairship.instances.pool import NotConnected, Pool, PoolSettings
from kairship.kube import Client, NotFound, kinds
from kairship.reconcile import Metrics, SystemClock
from kairship.resources import DriverName
from kairship.rpc.calls import Call, Caller
from kairship.rpc.errors import ApiError, Code, of_exception
from kairship.rpc.service_registry import Backend, ServiceRegistry
from kairship.rpc.sight import EVERYTHING
from kairship.wire import methods, violations
from support.instance_rights import grant
from support.our_kinds import SERVED
from support.own_global import identity
from support.shared_plane import MEMBERS
from support.waiting import PATIENCE, eventually

INSTANCE = SERVED["Instance"]
DRIVERS = (AvailableDriver(DriverName.LOCAL, ("v1.18.2", "v1.18.1")), EXTERNAL)
ALICE = Caller(id="alice", name="Alice")

M = TypeVar("M", bound=Message[Any])

_QUICK = PoolSettings(probe_interval=0.5, retry_interval=0.1, grace=1.0)
_METHODS = {f"{method.service}.{method.name}": method for method in methods().values()}


class Api:
    """Calls methods by their names."""

    def __init__(self, registry: ServiceRegistry, world: Client, pool: Pool) -> None:
        self.world = world
        """A client with every right in the global cluster."""
        self.pool = pool
        self.warnings: list[str] = []
        """The warnings of the last call."""
        self.age: float | None = None
        """The age of the data of the last call; 0 if it came from a cluster itself."""
        self.caller = ALICE
        self.sight = EVERYTHING
        """The sight of the next calls."""
        self._registry = registry

    async def __call__(self, name: str, reply: type[M], /, **fields: Any) -> M:
        """Calls `name`, which is Service.Method. Raises errors in the form in which a caller gets them."""
        method, call, request = self._prepare(name, fields)
        handler = self._registry.unary(method)
        assert handler is not None, f"{name} is not implemented"
        try:
            found = await handler(request, call)
        except Exception as error:
            api_error = of_exception(error, request_id="test")
            if api_error is error:
                raise
            raise api_error from error
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
        call.coverage_of = lambda _: self.sight.coverage
        request = method.request(**fields)
        assert not list(violations(request)), "the entrance would refuse this"
        return method, call, request

    async def instance(self, name: str = "demo") -> Client:
        """Waits until the pool is connected to an instance, and returns its client with every right."""

        def connected() -> Client | None:
            try:
                return self.pool.instance(name)
            except NotConnected:
                return None

        client: Client = await eventually(connected, f"a connection to instance {name}")
        return client


@contextmanager
def refused(code: Code, match: str | None = None) -> Iterator[pytest.ExceptionInfo[ApiError]]:
    """Asserts that the block raises an API error with this code."""
    with pytest.raises(ApiError, match=match) as caught:
        yield caught
    assert caught.value.code is code, f"{caught.value.code.name}: {caught.value.message}"


async def discard(world: Client, name: str) -> None:
    """Deletes an instance without a driver, and removes its finalizers."""
    await world.delete(INSTANCE, name, missing_ok=True)
    with suppress(NotFound):  # no controller adds a finalizer to an object that is being deleted
        await world.patch(INSTANCE, name, {"metadata": {"finalizers": None}})


@asynccontextmanager
async def services_of(plane: EmbeddedPlane, *, ghippo: Backend | None = None) -> AsyncIterator[Api]:
    """Runs the pool and all services, until the end of the block."""
    connection = await plane.global_connection()
    async with (
        _leaving_no_connection(),
        Client(connection) as world,
        Client(await identity(connection, rbac.ACCOUNT)) as client,
    ):
        metrics, clock = Metrics(), SystemClock()
        pool = Pool(client, clock=clock, metrics=metrics, settings=_QUICK)
        services = Services(client, pool, clock=clock, metrics=metrics, drivers=DRIVERS, ghippo=ghippo)
        api = Api(ServiceRegistry(services.by_name()), world, pool)
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(pool.run()), tasks.create_task(services.run())]
            await services.wait_synced()
            await pool.wait_synced()
            await grant(await api.instance(), ALICE.id, clusters=[member.name for member in MEMBERS])
            for member in MEMBERS:
                await _grant_in_member(plane, member.name, await api.instance())
            yield api
            for task in running:
                task.cancel()


async def _grant_in_member(plane: EmbeddedPlane, name: str, instance: Client) -> None:
    """Services read in members as the caller. Returns when the caller is let through, which Karmada sees to."""
    async with Client(await plane.members.connection(name)) as member:
        await grant(member, ALICE.id)
    alice, pods = instance.impersonating(person_inside(ALICE.id, ())), MemberResource.at(name, kinds.PODS)
    await eventually(lambda: alice.list(pods, limit=1), f"the way of {ALICE.name} into {name}")


@asynccontextmanager
async def _leaving_no_connection() -> AsyncIterator[None]:
    """Waits for the end of connections: TLS closes a moment after its stream, and needs the event loop for it."""

    def open_now() -> set[tuple[str, ...]]:
        return {tuple(map(str, each.laddr)) for each in psutil.Process().net_connections("tcp")}

    before = open_now()
    yield

    await eventually(lambda: open_now() <= before, "the end of all connections")
