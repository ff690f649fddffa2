"""Keeps the tokens of the plane's own processes fresh: `python -m kairship.embedded.token_keeper`.

In production the kubelet renews a pod's tokens; here this process does. It may do one thing only, ask for tokens of the
service accounts that it is told about, for the global cluster or for another audience, and writes each into a file that
its owner reads again as it changes. It listens
on its port once every token is fresh, so that whoever starts after it never begins with an expired one.

One task; a round of renewals every few minutes, and sooner after a failure.
"""

import argparse
import asyncio
import signal
from collections.abc import Mapping
from pathlib import Path

import structlog

from kairship.controlplane.pki import write_private
from kairship.kube import Client, Connection, KubeError, kinds

LIFETIME = 3600
"""Seconds. A token is never used for longer, whoever may have copied it."""
ROUND = 600.0
RETRY = 2.0

Wanted = tuple[str, str | None]
"""An account, and the audience that its token is for: the API server if there is none."""

log = structlog.get_logger(__name__)


async def issue(client: Client, *, namespace: str, wanted: Wanted, path: Path) -> None:
    """A new token of a service account, in its file."""
    account, audience = wanted
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": LIFETIME} | ({"audiences": [audience]} if audience else {}),
    }
    reply = await client.create(kinds.SERVICE_ACCOUNTS, request, namespace=namespace, name=account, subresource="token")
    await asyncio.to_thread(write_private, path, reply["status"]["token"].encode())


async def keep(connection: Connection, *, namespace: str, tokens: Mapping[Wanted, Path], port: int) -> None:
    """Until cancelled."""
    server: asyncio.Server | None = None
    async with Client(connection, user_agent="kairship-token-keeper") as client:
        while True:
            try:
                for wanted, path in tokens.items():
                    await issue(client, namespace=namespace, wanted=wanted, path=path)
            except KubeError as error:
                log.warning("a token could not be renewed", error=str(error))
                await asyncio.sleep(RETRY)
                continue
            if server is None:
                server = await asyncio.start_server(_greet, "127.0.0.1", port)
            await asyncio.sleep(ROUND)


async def _greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def _run(arguments: argparse.Namespace) -> None:
    tokens: dict[Wanted, Path] = {}
    for account, audience, file in arguments.token:
        tokens[account, audience or None] = Path(file)
    connection = Connection.from_kubeconfig(arguments.kubeconfig)
    work = asyncio.create_task(keep(connection, namespace=arguments.namespace, tokens=tokens, port=arguments.port))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, work.cancel)
    await asyncio.wait((work,))
    if not work.cancelled():
        work.result()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--token", nargs=3, action="append", required=True, metavar=("ACCOUNT", "AUDIENCE", "FILE"))
    parser.add_argument("--port", type=int, required=True)
    asyncio.run(_run(parser.parse_args()))
