"""A candidate process that, while it leads, writes one ConfigMap after the other through the fence.

It prints one JSON object per line when it stands, which means that it has read the lease, and when it begins and ceases
to lead. SIGTERM stops it in order. Each ConfigMap has the number of the term in which it was written.
"""

import argparse
import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path

import structlog

from kairship.kube import Connection, KubeError, kinds
from kairship.reconcile import Elector, FencedBy, InterceptedClient, LeaderTerm, LeaseName, Metrics, TermEnded
from kairship.reconcile.leaderelection import elector as elector_module
from kairship.reconcile.leaderelection.lease_lock import LeaseLock


def say(event: str, **details: object) -> None:
    print(json.dumps({"event": event, "at": time.monotonic(), **details}), flush=True)  # noqa: T201


def block(seconds: float) -> None:
    """Blocks the event loop and keeps a core busy."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1000))


class TellingLock(LeaseLock):
    """Says when it has read the lease for the first time: from then on it knows when the lease runs out."""

    _told = False

    async def _claim(self) -> LeaderTerm | None:
        term = await super()._claim()
        if not self._told:
            self._told = True
            say("stands")
        return term


class Writer:
    """At its write number `stop_at` the process stops itself, between the decision to write and the request."""

    def __init__(self, connection: Connection, namespace: str, *, blocking: float, stop_at: int) -> None:
        self._connection = connection
        self._namespace = namespace
        self._blocking = blocking
        self._until_stop = stop_at

    async def write_for_ever(self, term: LeaderTerm) -> None:
        async with InterceptedClient(self._connection, interceptors=[FencedBy(term)]) as client:
            while True:
                await self._write(client, term)
                block(self._blocking)
                await asyncio.sleep(0.02)

    async def _write(self, client: InterceptedClient, term: LeaderTerm) -> None:
        body = {"metadata": {"generateName": "written-", "labels": {"term": str(term.number)}}}
        self._until_stop -= 1
        if self._until_stop == 0:
            say("stops itself", term=term.number)
            os.kill(os.getpid(), signal.SIGSTOP)
        try:
            await client.create(kinds.CONFIGMAPS, body, namespace=self._namespace)
        except TermEnded:
            say("fenced", term=term.number)
        except KubeError:
            pass  # the next write may succeed


async def main(arguments: argparse.Namespace) -> None:
    connection = Connection.from_kubeconfig(Path(arguments.kubeconfig))
    elector = Elector(connection, LeaseName(arguments.namespace, "leader"), metrics=Metrics())
    writer = Writer(connection, arguments.namespace, blocking=arguments.blocking, stop_at=arguments.stop_at)

    async def lead(term: LeaderTerm) -> None:
        say("leads", term=term.number)
        try:
            await writer.write_for_ever(term)
        finally:
            say("stopped", term=term.number)

    standing = asyncio.create_task(elector.run(lead))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, standing.cancel)
    await asyncio.wait((standing,))
    say("ended")


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    elector_module.LeaseLock = TellingLock  # type: ignore[attr-defined]
    parser = argparse.ArgumentParser()
    parser.add_argument("kubeconfig")
    parser.add_argument("namespace")
    parser.add_argument("--blocking", type=float, default=0.0)
    parser.add_argument("--stop-at", type=int, default=0)
    asyncio.run(main(parser.parse_args()))
