"""The same requests to a real kube-apiserver and to the index, compared answer by answer, while objects change.

Lists are compared exactly: the index says which revision its list shows, and the API server is asked for that revision.
Requests that pass through are answered by the API server itself; the tests say which must not pass through.
"""

import asyncio
import itertools
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
import pytest
from support.index_stores import Store, postgres, store  # noqa: F401 - fixtures
from support.waiting import PATIENCE, eventually

from kairship.index import CurrentIndex, KubernetesReads, PageTokens, PassThrough, ReadRequest, Write
from kairship.kpanda.collector import ClusterCollector, CollectorSettings
from kairship.kube import Client, Connection, Resource, kinds
from kairship.reconcile import SystemClock

NAMESPACES = ("diff-a", "diff-a-b", "diff-b")
APPS = ("web", "db", "")
COLLECTED = (kinds.CONFIGMAPS, kinds.PODS, kinds.DEPLOYMENTS, kinds.NAMESPACES, kinds.SERVICES)

LABELS = (
    *("app", "!app", "app=web", "app==web", "app!=web", "app=", "app in (web,db)", "app in (web),tier in (1,2)"),
    *("app notin (web)", "app notin (web,db),tier", "app in ()", "app in (,web)", "tier>2", "tier<3", "tier>1,tier<5"),
    *("kairship.test/long-key=x", "tier!=1,app", "nothing", "!nothing", "app=web,app!=web", " app = web , tier > 0 "),
)
BAD_LABELS = (
    "app=web,",
    ",app",
    "app in web",
    "app in (web",
    "tier>x",
    "a b",
    "=",
    "app=a b",
    "-x=1",
    "app=" + "x" * 64,
)
POD_FIELDS = (
    *("metadata.name=pod-1", "metadata.name!=pod-1", "metadata.namespace=diff-a", "metadata.namespace!=diff-a"),
    *("spec.nodeName=", "spec.nodeName=n1", "spec.nodeName!=n1", "status.phase=Pending", "status.phase!=Pending"),
    *(
        "spec.restartPolicy=Never",
        "spec.schedulerName=default-scheduler",
        "spec.serviceAccountName=",
        "spec.hostNetwork=true",
    ),
    *("spec.nodeName=n1,status.phase=Pending", "status.podIP=", "", ",", "metadata.name=pod-1,"),
)
BAD_FIELDS = ("spec.containers=x", "metadata.name", "metadata.uid=x", "status.phase=a=b", "x=\\z")


class Kube(Protocol):
    @property
    def connection(self) -> Connection: ...


@dataclass
class Both:
    """An API server, and the index of it."""

    client: Client
    reads: KubernetesReads
    store: Store
    prefix: str

    def namespace(self, name: str) -> str:
        return f"{self.prefix}-{name}"

    async def from_index(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        name: str | None = None,
        caller: str = "me",
        **asked: str,
    ) -> tuple[int, Any]:
        """Raises `PassThrough`."""
        request = ReadRequest("it", resource, asked, caller, namespace, name)
        async with self.reads.answer(request) as reply:
            return reply.status, msgspec.json.decode(b"".join([chunk async for chunk in reply.body]))

    async def from_server(
        self, resource: Resource, *, namespace: str | None = None, name: str | None = None, **asked: str
    ) -> tuple[int, Any]:
        reply = await self.client.request("GET", resource.path(namespace=namespace, name=name), params=asked)
        return reply.status, msgspec.json.decode(reply.body)

    async def same_list(self, resource: Resource, *, namespace: str | None = None, **asked: str) -> int:
        """Compares the lists of both and returns the number of their items."""
        status, ours = await self.from_index(resource, namespace=namespace, **asked)
        revision = ours["metadata"]["resourceVersion"]
        exact = {"resourceVersion": revision, "resourceVersionMatch": "Exact"}
        expected_status, theirs = await self.from_server(resource, namespace=namespace, **asked, **exact)
        assert (status, ours) == (expected_status, theirs), asked
        return len(ours["items"])

    async def caught_up(self, resource: Resource, revision: str, *, timeout: float = PATIENCE) -> None:
        async def answers() -> bool:
            with suppress(PassThrough):
                await self.from_index(resource, resourceVersion=revision, limit="1")
                return True
            return False

        await eventually(answers, f"revision {revision} in the index", timeout=timeout)


@pytest.fixture
async def both(kube: Kube, store: Store) -> AsyncIterator[Both]:  # noqa: F811 - the fixture
    prefix = f"d{uuid.uuid4().hex[:6]}"
    async with Client(kube.connection) as client:
        writer = await store.writer("it")
        for name in NAMESPACES:
            await client.create(kinds.NAMESPACES, {"metadata": {"name": f"{prefix}-{name}"}})
        collector = ClusterCollector(
            client, writer, writer, clock=SystemClock(), settings=CollectorSettings(heartbeat=0.5)
        )
        running = asyncio.create_task(collector.run())
        # What the index answers must not depend on how soon a busy machine sends the heartbeat.
        current = CurrentIndex(store.index, store.writes, max_age=PATIENCE)
        it = Both(client, KubernetesReads(current, PageTokens(b"k" * 32)), store, prefix)
        try:
            await populate(it)
            for resource in COLLECTED:
                page = await client.list(resource)
                newest = max((int(one["metadata"]["resourceVersion"]) for one in page.items), default=0)
                await it.caught_up(resource, str(newest))
            yield it
        finally:
            running.cancel()
            await asyncio.wait((running,))
            for name in NAMESPACES:
                await client.delete(kinds.NAMESPACES, f"{prefix}-{name}")


def labels(number: int) -> dict[str, str]:
    mine = {"tier": str(number % 7)}
    if number % 4:
        mine["app"] = APPS[number % 3]
    if number % 5 == 0:
        mine["kairship.test/long-key"] = "x"
    return mine


def pod(name: str, number: int) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": labels(number)},
        "spec": {
            "containers": [{"name": "c", "image": "example/image:1"}],
            "restartPolicy": "Never" if number % 2 else "Always",
            "automountServiceAccountToken": False,
            **({"nodeName": "n1"} if number % 3 == 0 else {}),
            **({"hostNetwork": True} if number % 5 == 0 else {}),
        },
    }


async def populate(it: Both) -> None:
    for namespace in NAMESPACES:  # no controller creates it in this cluster, and pods are refused without it
        account = {"metadata": {"name": "default"}}
        await it.client.create(kinds.SERVICE_ACCOUNTS, account, namespace=it.namespace(namespace))
    for number, namespace in itertools.product(range(12), NAMESPACES):
        place = f"{it.prefix}-{namespace}"
        await it.client.create(
            kinds.CONFIGMAPS,
            {"metadata": {"name": f"map-{number}", "labels": labels(number)}, "data": {"text": '\n"<&\u2028'}},
            namespace=place,
        )
        if number < 6:
            await it.client.create(kinds.PODS, pod(f"pod-{number}", number), namespace=place)
    await it.client.create(
        kinds.SECRETS, {"metadata": {"name": "s"}, "stringData": {"p": "w"}}, namespace=f"{it.prefix}-diff-a"
    )


@asynccontextmanager
async def churn(it: Both) -> AsyncIterator[None]:
    """Creates, relabels and deletes objects for as long as the block lasts."""

    async def write() -> None:
        for number in itertools.count():
            place = f"{it.prefix}-{NAMESPACES[number % 3]}"
            body = {"metadata": {"name": f"churn-{number % 10}", "labels": labels(number)}, "data": {"n": str(number)}}
            await it.client.apply(kinds.CONFIGMAPS, body, namespace=place, field_manager="churn")
            if number % 4 == 3:
                gone = f"churn-{(number - 2) % 10}"
                await it.client.delete(kinds.CONFIGMAPS, gone, namespace=place, missing_ok=True)

    writing = asyncio.create_task(write())
    try:
        yield
        assert not writing.done(), writing.result()
    finally:
        writing.cancel()
        await asyncio.wait((writing,))


async def test_lists_are_the_same_while_objects_change(both: Both) -> None:
    found = 0
    async with churn(both):
        for selector, name in itertools.product(("", *LABELS), (None, both.namespace("diff-a"))):
            asked = {"labelSelector": selector} if selector else {}
            found += await both.same_list(kinds.CONFIGMAPS, namespace=name, **asked)
        for selector in LABELS:
            fields = f"metadata.namespace={both.namespace('diff-a')}"
            found += await both.same_list(kinds.CONFIGMAPS, labelSelector=selector, fieldSelector=fields)
        for fields, name in itertools.product(POD_FIELDS, (None, both.namespace("diff-a-b"))):
            asked = {"fieldSelector": fields} if fields else {}
            found += await both.same_list(kinds.PODS, namespace=name, **asked)
        for resource in (kinds.NAMESPACES, kinds.SERVICES, kinds.DEPLOYMENTS):
            await both.same_list(resource)
        assert await both.same_list(kinds.CONFIGMAPS, namespace="there-is-no-such-namespace") == 0
    assert found > 300  # the lists are not empty


async def test_every_object_is_the_same(both: Both) -> None:
    for resource in (kinds.CONFIGMAPS, kinds.PODS, kinds.NAMESPACES):
        page = await both.client.list(resource)
        await both.caught_up(resource, max((one["metadata"]["resourceVersion"] for one in page.items), key=int))
        for one in page.items:
            name, namespace = one["metadata"]["name"], one["metadata"].get("namespace")
            if not (namespace or name).startswith(both.prefix):
                continue  # other tests use this cluster too
            ours = await both.from_index(resource, name=name, namespace=namespace)
            assert ours == await both.from_server(resource, name=name, namespace=namespace)
    missing = {"name": "not-there", "namespace": both.namespace("diff-a")}
    for resource in (kinds.CONFIGMAPS, kinds.DEPLOYMENTS):
        assert await both.from_index(resource, **missing) == await both.from_server(resource, **missing)


def continued(token: str) -> dict[str, str]:
    return {"continue": token} if token else {}


@pytest.mark.parametrize("limit", [1, 5, 12, 100])
async def test_pages_are_the_same(both: Both, limit: int) -> None:
    at = {"namespace": both.namespace("diff-a"), "limit": str(limit)}
    for selector in ("", "app=web", "tier>1"):
        asked = dict(at, labelSelector=selector) if selector else dict(at)
        ours_token, theirs_token = "", ""
        while True:
            ours_status, ours = await both.from_index(kinds.CONFIGMAPS, **asked, **continued(ours_token))
            theirs_status, theirs = await both.from_server(kinds.CONFIGMAPS, **asked, **continued(theirs_token))
            assert (ours_status, ours.get("items")) == (theirs_status, theirs.get("items")), (ours, theirs)
            assert ours["metadata"].get("remainingItemCount") == theirs["metadata"].get("remainingItemCount")
            ours_token, theirs_token = ours["metadata"].get("continue", ""), theirs["metadata"].get("continue", "")
            assert bool(ours_token) == bool(theirs_token)
            if not ours_token:
                break


async def test_what_is_refused_is_refused_by_the_server(both: Both) -> None:
    """The index does not answer requests that an API server refuses, so the refusal is the API server's own."""
    at = {"namespace": both.namespace("diff-a")}
    refused: list[dict[str, str]] = [
        *({"labelSelector": selector} for selector in BAD_LABELS),
        *({"fieldSelector": selector} for selector in BAD_FIELDS),
        {"limit": "x"},
        {"resourceVersion": "x"},
        {"resourceVersion": "-1"},
        {"resourceVersionMatch": "Exact"},
        {"resourceVersion": "1", "resourceVersionMatch": "Whatever"},
        {"continue": "bm90aGluZw"},
    ]
    for asked in refused:
        with pytest.raises(PassThrough):
            await both.from_index(kinds.CONFIGMAPS, **at, **asked)
        status, _ = await both.from_server(kinds.CONFIGMAPS, **at, **asked)
        assert status >= 400, asked
    for resource in (kinds.SECRETS, kinds.LEASES):
        with pytest.raises(PassThrough):
            await both.from_index(resource)
    with pytest.raises(PassThrough):
        await both.from_index(kinds.CONFIGMAPS, resourceVersion=str(2**60))


async def test_a_caller_sees_its_own_writes(both: Both) -> None:
    place = both.namespace("diff-b")
    async with churn(both):
        for number in range(60):
            name = f"own-{number % 3}"
            body = {"metadata": {"name": name}, "data": {"n": str(number)}}
            done = await both.client.apply(kinds.CONFIGMAPS, body, namespace=place, field_manager="me")
            written = Write("it", "configmaps", revision=int(done["metadata"]["resourceVersion"]))
            await both.store.writes.note("me", written)
            with suppress(PassThrough):  # on a busy machine the index is often later than a reader waits
                status, seen = await both.from_index(kinds.CONFIGMAPS, namespace=place, name=name)
                assert (status, int(seen["data"]["n"])) == (200, number)
            if number % 3 == 2:
                await both.client.delete(kinds.CONFIGMAPS, name, namespace=place)
                await both.store.writes.note("me", Write("it", "configmaps", deleted_uid=done["metadata"]["uid"]))
                with suppress(PassThrough):
                    status, _ = await both.from_index(kinds.CONFIGMAPS, namespace=place, name=name)
                    assert status == 404

    async def answers() -> bool:
        with suppress(PassThrough):
            status, _ = await both.from_index(kinds.CONFIGMAPS, namespace=place, name="own-2")
            assert status == 404
            return True
        return False

    await eventually(answers, "the last write in the index")
