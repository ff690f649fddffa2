"""An implementation of the Instance service that echoes its requests."""

import asyncio
import itertools
from collections.abc import AsyncIterator

from protobuf.wkt import Empty

from kairship.gen.kairship.instance.v1alpha1.instance_pb import (
    CreateInstanceRequest,
    DeleteInstanceRequest,
    GetInstanceRequest,
    Instance,
    ListInstancesRequest,
    ListInstancesResponse,
    WatchInstancesRequest,
    WatchInstancesResponse,
)
from kairship.gen.kairship.types.v1alpha1.metadata_pb import ObjectMeta
from kairship.rpc.calls import Call

INSTANCE = "kairship.v1alpha1.Instance"


class Echo:
    """Keeps its requests in `requests`. The name in a request decides how it behaves."""

    def __init__(self) -> None:
        self.requests: list[object] = []
        self.calls: list[Call] = []
        self.released = asyncio.Event()
        self.entered = asyncio.Semaphore(0)
        self.sent = 0

    async def get_instance(self, request: GetInstanceRequest, call: Call) -> Instance:
        self.requests.append(request)
        self.calls.append(call)
        if request.name == "defect":
            raise RuntimeError("hunter2")
        if request.name == "slow":
            self.entered.release()
            await self.released.wait()
        if request.name == "old":
            call.note_age(12.5)
            call.warn("it is old")
        return Instance(metadata=ObjectMeta(name=request.name))

    async def list_instances(self, request: ListInstancesRequest, call: Call) -> ListInstancesResponse:
        self.requests.append(request)
        return ListInstancesResponse()

    async def create_instance(self, request: CreateInstanceRequest, call: Call) -> Instance:
        self.requests.append(request)
        return Instance()

    async def delete_instance(self, request: DeleteInstanceRequest, call: Call) -> Empty:
        return Empty()

    async def watch_instances(
        self, request: WatchInstancesRequest, call: Call
    ) -> AsyncIterator[WatchInstancesResponse]:
        """Sends events of a kilobyte without end. It waits for `released` after the third, or before the first."""
        if request.name == "quiet":
            await self.released.wait()
        for number in itertools.count():
            if number == 3:
                self.entered.release()
                await self.released.wait()
            self.sent += 1
            yield WatchInstancesResponse(instance=Instance(metadata=ObjectMeta(name="x" * 1000)))
