"""Renews the ServiceAccount tokens of the plane's own processes: `python -m kairship.embedded.token_keeper`.

In production the kubelet renews a pod's tokens; in the embedded plane this process does. Its RBAC allows it one thing:
to request tokens of the ServiceAccounts that it is configured with, for the global cluster or for another audience. It
writes each token into a file, which the process that uses the token reads again when it changes. It listens on its port
once every token is fresh, so that a process that starts after it never begins with an expired token.

It runs as one task that renews all tokens every few minutes, and sooner after a failure.
"""

import argparse
import asyncio
import signal
from collections.abc import Mapping
from pathlib import Path

import structlog

from kairship.controlplane.pki import write_private
from kairship.kube import Client, Connection, KubeError, kinds
from kairship.process.loopback import LOOPBACK

LIFETIME = 3600
"""Seconds that a token is valid for. A token that was copied cannot be used for longer."""
RENEW_INTERVAL = 600.0
RETRY_DELAY = 2.0

TokenKey = tuple[str, str | None]
"""A ServiceAccount, and the audience of its token; without one, the token is for the API server."""

log = structlog.get_logger(__name__)


async def renew(client: Client, *, namespace: str, key: TokenKey, path: Path) -> None:
    """Request a new token and write it to its file."""
    account, audience = key
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": LIFETIME} | ({"audiences": [audience]} if audience else {}),
    }
    reply = await client.create(kinds.SERVICE_ACCOUNTS, request, namespace=namespace, name=account, subresource="token")
    await asyncio.to_thread(write_private, path, reply["status"]["token"].encode())


async def keep_fresh(connection: Connection, *, namespace: str, tokens: Mapping[TokenKey, Path], port: int) -> None:
    """Renew the tokens until the task is cancelled."""
    server: asyncio.Server | None = None
    async with Client(connection, user_agent="kairship-token-keeper") as client:
        while True:
            try:
                for key, path in tokens.items():
                    await renew(client, namespace=namespace, key=key, path=path)
            except KubeError as error:
                log.warning("a token could not be renewed", error=str(error))
                await asyncio.sleep(RETRY_DELAY)
                continue
            if server is None:
                server = await asyncio.start_server(_accept_probe, LOOPBACK, port)
            await asyncio.sleep(RENEW_INTERVAL)


async def _accept_probe(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def _run(arguments: argparse.Namespace) -> None:
    tokens: dict[TokenKey, Path] = {}
    for account, audience, file in arguments.token:
        tokens[account, audience or None] = Path(file)
    connection = Connection.from_kubeconfig(arguments.kubeconfig)
    work = asyncio.create_task(
        keep_fresh(connection, namespace=arguments.namespace, tokens=tokens, port=arguments.port)
    )
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
