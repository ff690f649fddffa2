"""The process `kairship apiserver`: it opens the ports, keeps a crew of workers, and serves their health and metrics.

It serves no API request itself. REST has one listening socket that every worker inherits: any free worker accepts, and
when a worker dies, connections that wait in the backlog are accepted by the others. gRPC cannot take over a socket, so
the workers listen on one port side by side (SO_REUSEPORT), and this process reserves the port with a socket that does
not listen. A connection that waits for a gRPC worker when it dies is reset; gRPC clients reconnect by themselves, and
repeat calls that had not reached a server.
"""

import asyncio
import signal
import socket
import tempfile
from contextlib import ExitStack
from pathlib import Path

import structlog

from kairship.apiserver.crew import Crew
from kairship.apiserver.settings import Address, Settings
from kairship.apiserver.worker_spec import WorkerSpec
from kairship.kube import Connection
from kairship.process.certificates import ServerCertificate
from kairship.process.loopback import is_loopback
from kairship.process.ops import OpsServer
from kairship.process.start_error import StartError

_BACKLOG = 1024

log = structlog.get_logger(__name__)


async def run(settings: Settings) -> None:
    """Runs until SIGTERM or SIGINT. Raises `StartError` or `KubeError` if it cannot start."""
    _check(settings)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kairship-apiserver-")))
        rest = stack.enter_context(_bound(settings.rest, shared=False))
        rest.listen(_BACKLOG)
        grpc = stack.enter_context(_bound(settings.grpc, shared=True))
        crew = Crew(
            lambda number: WorkerSpec(
                settings=settings,
                rest_fd=rest.fileno(),
                grpc_port=grpc.getsockname()[1],
                ops_socket=directory / f"{number}.sock",
            ),
            size=settings.workers,
        )
        loop.add_signal_handler(signal.SIGHUP, crew.signal, signal.SIGHUP)
        ops = OpsServer(ready=crew.ready, metrics=crew.metrics, token=settings.metrics_token)
        async with ops.serving((settings.ops.host, settings.ops.port)) as ops_port, asyncio.TaskGroup() as tasks:
            log.info(
                "listening",
                rest=_url(settings, rest.getsockname()[1]),
                grpc_port=grpc.getsockname()[1],
                ops_port=ops_port,
                workers=settings.workers,
            )
            running = tasks.create_task(crew.run())
            stopping = tasks.create_task(stop.wait())
            await asyncio.wait((running, stopping), return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            await crew.stop(grace=settings.linger + settings.grace)
            running.cancel()
    log.info("stopped")


def _check(settings: Settings) -> None:
    """Raises once, before any worker is started, what every worker would die of."""
    if settings.tls is not None:
        ServerCertificate(settings.tls)
    else:
        for address in (settings.rest, settings.grpc):
            if not is_loopback(address.host):
                raise StartError(
                    f"{address.host} can be reached from other hosts, so a certificate is needed: "
                    "give --tls-cert and --tls-key, or listen on 127.0.0.1"
                )
    try:
        settings.audit_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise StartError(f"the audit cannot be written to {settings.audit_dir}: {error.strerror}") from None
    Connection.from_kubeconfig(settings.kubeconfig)


def _bound(address: Address, *, shared: bool) -> socket.socket:
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind(where)
    except OSError as error:
        raise StartError(f"cannot listen on {address.host}:{address.port}: {error.strerror}") from None
    return bound


def _url(settings: Settings, port: int) -> str:
    host = f"[{settings.rest.host}]" if ":" in settings.rest.host else settings.rest.host
    return f"{'https' if settings.tls else 'http'}://{host}:{port}"
