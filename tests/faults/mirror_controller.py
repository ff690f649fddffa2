"""A small controller for tests: every ConfigMap labelled `original` gets a copy, which is deleted with it.

It uses a shape, a finalizer, server-side apply and events of the runtime. As a program it runs until it is killed;
`--die-at N` kills it at its Nth change, before it is sent or (`--after`) when it has just been carried out.
"""

import argparse
import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import structlog
from support.reconcile import Fault, Faults

from kairship.kube import Client, Connection, kinds
from kairship.reconcile import (
    DONE,
    Backoff,
    Call,
    Clock,
    Context,
    Controller,
    InterceptedClient,
    Key,
    ListWatchOptions,
    Manager,
    Metadata,
    Metrics,
    ObjectReference,
    Reflector,
    Result,
    RetryPolicy,
    Selection,
    SystemClock,
    Watch,
)

FINALIZER = "test.kairship.io/mirror"


class Original(msgspec.Struct, frozen=True):
    metadata: Metadata
    data: dict[str, str] = {}


class Copy(Original, frozen=True):
    """The same shape for the ConfigMaps that the controller creates."""


def original_of(copy: Copy) -> list[Key]:
    return [Key(copy.metadata.name.removesuffix("-copy"), namespace=copy.metadata.namespace)]


def own_key(obj: Original) -> list[Key]:
    return [Key(obj.metadata.name, namespace=obj.metadata.namespace)]


def mirror(client: Client, namespace: str, *, clock: Clock, metrics: Metrics) -> Manager:
    options = ListWatchOptions(backoff=Backoff(0.05, 0.2))
    originals = Reflector(
        client,
        Selection(kinds.CONFIGMAPS, Original, namespace=namespace, label_selector="role=original"),
        clock=clock,
        metrics=metrics,
        options=options,
    )
    copies = Reflector(
        client,
        Selection(kinds.CONFIGMAPS, Copy, namespace=namespace, label_selector="role=copy"),
        clock=clock,
        metrics=metrics,
        options=options,
    )

    async def reconcile(context: Context, key: Key) -> Result:
        original = originals.store.get(key.name, namespace=key.namespace)
        if original is None:
            return DONE
        name = f"{key.name}-copy"

        async def remove_copy() -> Result:
            await context.client.delete(kinds.CONFIGMAPS, name, namespace=key.namespace, missing_ok=True)
            return DONE

        if original.metadata.deletion_timestamp:
            return await context.owner.finalize(kinds.CONFIGMAPS, original, FINALIZER, remove_copy)
        if await context.owner.add_finalizer(kinds.CONFIGMAPS, original, FINALIZER):
            return DONE
        copy = copies.store.get(name, namespace=key.namespace)
        if copy is None or copy.data != original.data:
            body = {"metadata": {"name": name, "labels": {"role": "copy"}}, "data": original.data}
            await context.owner.apply(kinds.CONFIGMAPS, body, namespace=key.namespace)
            context.events.normal(ObjectReference.to(kinds.CONFIGMAPS, original), "Copied", f"{name} is up to date")
        return DONE

    controller = Controller(
        name="mirror",
        watches=[Watch(originals, own_key), Watch(copies, original_of)],
        reconcile=reconcile,
        workers=2,
        retries=RetryPolicy(backoff=Backoff(0.02, 0.5)),
    )
    return Manager([controller], client=client, clock=clock, metrics=metrics)


class DeadlyFaults(Faults):
    """Kills the process at one of its mutating calls."""

    def __init__(self, clock: Clock, *, at: int, fault: Fault) -> None:
        super().__init__(clock)
        self._left = at
        self._fault = fault

    def choose(self, call: Call) -> Fault | None:
        if not call.mutating:
            return None
        self._left -= 1
        return self._fault if self._left == 0 else None


async def main(arguments: argparse.Namespace, say: Callable[[str], None]) -> None:
    clock = SystemClock()
    fault = Fault.KILLED_AFTER if arguments.after else Fault.KILLED_BEFORE
    deadly = DeadlyFaults(clock, at=arguments.die_at, fault=fault)
    connection = Connection.from_kubeconfig(Path(arguments.kubeconfig))
    async with InterceptedClient(connection, interceptors=[deadly]) as client:
        say("runs")
        await mirror(client, arguments.namespace, clock=clock, metrics=Metrics()).run()


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    parser = argparse.ArgumentParser()
    parser.add_argument("kubeconfig")
    parser.add_argument("namespace")
    parser.add_argument("--die-at", type=int, default=0)
    parser.add_argument("--after", action="store_true")
    asyncio.run(main(parser.parse_args(), lambda word: print(word, flush=True)))  # noqa: T201
