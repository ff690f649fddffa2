"""The ways in which a person reaches an instance: REST, gRPC, and kubectl on the instance and on a member of it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import grpc

from kairship.embedded import EmbeddedPlane
from kairship.engine import Engine
from support.entrance import BASE, METHODS
from support.kubectl import Kubectl, through_entrance
from support.people import Person

_LIST = METHODS["Apps.ListDeployments"]
_REFUSALS = frozenset({grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.NOT_FOUND})


@dataclass(frozen=True)
class WaysIn:
    person: Person
    instance: str
    on_instance: Kubectl
    on_member: Kubectl

    async def answers(self, namespace: str) -> Mapping[str, bool | None]:
        """Returns for each way whether it allows access to a namespace, or None if there is no answer at present."""
        ways: Mapping[str, Callable[[str], Awaitable[bool | None]]] = {
            "REST": self._by_rest,
            "gRPC": self._by_grpc,
            "kubectl on the instance": lambda namespace: _by_kubectl(self.on_instance, namespace),
            "kubectl on a member": lambda namespace: _by_kubectl(self.on_member, namespace),
        }
        return {name: await way(namespace) for name, way in ways.items()}

    async def _by_rest(self, namespace: str) -> bool | None:
        try:
            reply = await self.person.get(f"{BASE}/instances/{self.instance}/namespaces/{namespace}/deployments")
        except (aiohttp.ClientError, TimeoutError):
            return None
        return {200: True, 403: False, 404: False}.get(reply.status)

    async def _by_grpc(self, namespace: str) -> bool | None:
        try:
            await self.person.client.call(_LIST, _LIST.request(instance=self.instance, namespace=namespace))
        except grpc.aio.AioRpcError as error:
            return False if error.code() in _REFUSALS else None
        return True


async def _by_kubectl(kubectl: Kubectl, namespace: str) -> bool | None:
    done = await kubectl("get", "configmaps", "-n", namespace, "--request-timeout=10s")
    if done.code == 0:
        return True
    return False if "Forbidden" in done.err or "NotFound" in done.err else None


async def ways_in(
    plane: EmbeddedPlane, engine: Engine, folder: Path, person: Person, *, instance: str, member: str
) -> WaysIn:
    token = person.client.headers["Authorization"].removeprefix("Bearer ")
    folder.mkdir()
    return WaysIn(
        person,
        instance,
        await through_entrance(plane, engine, folder, token=token, instance=instance),
        await through_entrance(plane, engine, folder, token=token, instance=instance, member=member),
    )
