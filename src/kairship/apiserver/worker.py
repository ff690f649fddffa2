"""One worker: serves REST on a socket that it inherits, and gRPC on a port that it shares with the other workers.

A process of its own, with an event loop of its own (uvloop); `process` starts it, replaces it when it dies and tells it
to stop. SIGTERM lets what runs come to its end, SIGHUP has it look for a renewed certificate.
"""

import asyncio
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import structlog
import uvloop
from prometheus_client import CollectorRegistry, generate_latest

from kairship.apiserver.assembly import Assembly
from kairship.apiserver.entrance import Entrance
from kairship.apiserver.origins import Origins
from kairship.apiserver.people import People
from kairship.apiserver.proxy.auditing import ProxyAudit
from kairship.apiserver.proxy.proxy import Behind
from kairship.apiserver.proxy.rights import ProxyRights
from kairship.apiserver.services.reach import Reach
from kairship.apiserver.settings import Settings
from kairship.apiserver.stream_guard import StreamGuard
from kairship.apiserver.tracing import tracing_from_environment
from kairship.kube import AddressRule, Client, Connection, KubeError
from kairship.process.allocation import keep_freed_memory
from kairship.process.certificates import ServerCertificate
from kairship.process.descriptors import take_all_descriptors
from kairship.process.logs import log_as_json
from kairship.process.ops import Ops

USER_AGENT = "kairship-apiserver"
_LOOK_AGAIN = 1.0
_TIMEOUT = 5.0

log = structlog.get_logger(__name__)


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker is told by the process that starts it."""

    settings: Settings
    listening: int
    """The number of the inherited descriptor that REST is served on."""
    grpc_port: int
    ops: Path
    """The unix socket on which it tells of itself."""

    def to_argument(self) -> str:
        return msgspec.json.encode(self, enc_hook=str).decode()

    @classmethod
    def from_argument(cls, text: str) -> "Assignment":
        return msgspec.json.decode(text, type=cls, dec_hook=lambda kind, value: kind(value))


class Worker:
    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment
        self._settings = assignment.settings
        self._state = "starting"
        self._ready = False

    async def run(self) -> None:
        """Until SIGTERM or SIGINT, and until everything that ran then has ended."""
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        certificate = ServerCertificate(self._settings.tls) if self._settings.tls else None
        if certificate is not None:
            loop.add_signal_handler(signal.SIGHUP, certificate.look_now)
        metrics = CollectorRegistry()
        tracing = tracing_from_environment()
        connection = Connection.from_kubeconfig(self._settings.kubeconfig)
        ops = Ops(ready=self._say_ready, metrics=lambda: asyncio.to_thread(generate_latest, metrics))
        async with (
            Client(connection, user_agent=USER_AGENT) as client,
            ops.serving(self._assignment.ops),
            Assembly(
                client,
                offers=self._settings.offers,
                ghippo=self._settings.ghippo,
                kpanda=self._settings.kpanda,
                index=self._settings.index,
                public=self._settings.public,
                addresses=AddressRule.allowing(self._settings.allow_addresses),
                metrics=metrics,
            ) as assembly,
            self._people(assembly) as people,
            asyncio.TaskGroup() as tasks,
        ):
            entrance = Entrance(
                assembly.registry,
                authenticator=people.authenticator,
                authorizer=people.vouching_for(assembly.gatekeeper),
                audit=people.audit,
                limits=self._settings.limits,
                metrics=metrics,
                tracing=tracing,
                receivers=assembly.receivers,
                origins=Origins.trusting(self._settings.trusted_proxies),
                behind=Behind(
                    instances=Reach(assembly.pool),
                    rights=ProxyRights(assembly.feed.authoriser),
                    callers=people,
                    audit=ProxyAudit(people.spool),
                    reads=assembly.reads,
                    writes=assembly.writes,
                ),
            )
            guard = StreamGuard(entrance.streams)
            assembly.feed.on_loss(guard.hear)
            people.guard(entrance.streams)
            knowing = tasks.create_task(people.run())
            background = [
                tasks.create_task(guard.run()),
                tasks.create_task(assembly.run()),
                tasks.create_task(self._begin(client, assembly, people, entrance)),
            ]
            if certificate is not None:
                background.append(tasks.create_task(certificate.follow()))
            async with entrance.serving(
                socket.socket(fileno=self._assignment.listening),
                self._grpc_address(),
                certificate=certificate,
                linger=self._settings.linger,
                grace=self._settings.grace,
            ):
                await stop.wait()
                self._ready, self._state = False, "stopping"
                for task in background:
                    task.cancel()
            knowing.cancel()
        await asyncio.to_thread(tracing.close)

    @asynccontextmanager
    async def _people(self, assembly: Assembly) -> AsyncIterator[People]:
        people = People(assembly.ghippo, audit_dir=self._settings.audit_dir, limits=self._settings.limits)
        try:
            yield people
        finally:
            await people.finish()

    async def _begin(self, client: Client, assembly: Assembly, people: People, entrance: Entrance) -> None:
        """When all that is needed has answered once. Later failures are told to those whom they concern, as replies."""
        while True:
            try:
                await client.version(timeout=_TIMEOUT)
            except KubeError as error:
                self._state = "the global cluster was not reached yet"
                log.warning("global cluster not reached", error=str(error))
                await asyncio.sleep(_LOOK_AGAIN)
            else:
                await assembly.wait_synced()
                self._state = "global management was not reached yet"
                await people.wait_known()
                self._ready, self._state = True, "ready"
                entrance.announce()
                log.info("serving", grpc_port=self._assignment.grpc_port)
                return

    def _grpc_address(self) -> str:
        host = self._settings.grpc.host
        return f"[{host}]:{self._assignment.grpc_port}" if ":" in host else f"{host}:{self._assignment.grpc_port}"

    async def _say_ready(self) -> tuple[bool, str]:
        return self._ready, self._state


def main() -> None:
    log_as_json()
    take_all_descriptors()
    keep_freed_memory()
    uvloop.run(Worker(Assignment.from_argument(sys.argv[1])).run())


if __name__ == "__main__":
    main()
