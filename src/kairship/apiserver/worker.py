"""A worker process: it serves REST on an inherited socket, and gRPC on a port that it shares with the other workers.

`crew` starts a worker, replaces it when it dies, and stops it. A worker has an event loop of its own (uvloop). On
SIGTERM it lets running requests end, on SIGHUP it looks for a renewed certificate. `assembly` constructs what it runs.
"""

import asyncio
import signal
import socket
import sys

import structlog
import uvloop
from prometheus_client import CollectorRegistry, generate_latest

from kairship.apiserver.assembly import Assembly
from kairship.apiserver.pipeline.tracing import tracing_from_environment
from kairship.apiserver.worker_spec import WorkerSpec
from kairship.kube import Client, Connection, KubeError
from kairship.process.allocation import keep_freed_memory
from kairship.process.certificates import ServerCertificate
from kairship.process.descriptor_limit import raise_descriptor_limit
from kairship.process.logs import log_as_json
from kairship.process.ops import OpsServer
from kairship.resources import reserve

USER_AGENT = "kairship-apiserver"
_RETRY_SECONDS = 1.0
_TIMEOUT = 5.0

log = structlog.get_logger(__name__)


class Worker:
    def __init__(self, spec: WorkerSpec) -> None:
        self._spec = spec
        self._settings = spec.settings
        reserve(spec.settings.reserved_namespaces)
        self._state = "starting"
        self._ready = False

    async def run(self) -> None:
        """Runs until SIGTERM or SIGINT, and then until every running request has ended."""
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        certificate = ServerCertificate(self._settings.tls) if self._settings.tls else None
        if certificate is not None:
            loop.add_signal_handler(signal.SIGHUP, certificate.check_now)
        metrics = CollectorRegistry()
        tracing = tracing_from_environment()
        connection = Connection.from_kubeconfig(self._settings.kubeconfig)
        ops = OpsServer(ready=self._readiness, metrics=lambda: asyncio.to_thread(generate_latest, metrics))
        async with (
            Client(connection, user_agent=USER_AGENT) as client,
            ops.serving(self._spec.ops_socket),
            Assembly(client, self._settings, metrics=metrics, tracing=tracing) as assembly,
            asyncio.TaskGroup() as tasks,
        ):
            until_drained = tasks.create_task(assembly.run_identities_and_audit())
            until_stopped = [
                tasks.create_task(assembly.run()),
                tasks.create_task(self._become_ready(client, assembly)),
            ]
            if certificate is not None:
                until_stopped.append(tasks.create_task(certificate.follow()))
            async with assembly.entrance.serving(
                socket.socket(fileno=self._spec.rest_fd),
                self._grpc_address(),
                certificate=certificate,
                linger=self._settings.linger,
                grace=self._settings.grace,
            ):
                await stop.wait()
                self._ready, self._state = False, "stopping"
                for task in until_stopped:
                    task.cancel()
            until_drained.cancel()
        await asyncio.to_thread(tracing.close)

    async def _become_ready(self, client: Client, assembly: Assembly) -> None:
        """Returns when every dependency has answered once. Later failures are reported in the replies they affect."""
        while True:
            try:
                await client.version(timeout=_TIMEOUT)
            except KubeError as error:
                self._state = "the global cluster was not reached yet"
                log.warning("global cluster not reached", error=str(error))
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                await assembly.wait_synced()
                self._state = "global management was not reached yet"
                await assembly.wait_identities()
                self._ready, self._state = True, "ready"
                assembly.entrance.set_serving()
                log.info("serving", grpc_port=self._spec.grpc_port)
                return

    def _grpc_address(self) -> str:
        host = self._settings.grpc.host
        return f"[{host}]:{self._spec.grpc_port}" if ":" in host else f"{host}:{self._spec.grpc_port}"

    async def _readiness(self) -> tuple[bool, str]:
        return self._ready, self._state


def main() -> None:
    log_as_json()
    raise_descriptor_limit()
    keep_freed_memory()
    uvloop.run(Worker(WorkerSpec.from_argument(sys.argv[1])).run())


if __name__ == "__main__":
    main()
