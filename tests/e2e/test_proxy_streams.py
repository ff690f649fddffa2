"""Terminals, logs and forwarded ports of pods in members, through the entrance; they end with the right to them."""

import asyncio
import json
import os
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from support.answering_pods import PORT, let_pods_answer, write_log
from support.entrance_process import entrance_of
from support.kubectl import Kubectl, end, through_entrance
from support.manifests import deployment, policy
from support.people import People, Person, within

from kairship.embedded import EmbeddedPlane
from kairship.engine import Engine
from kairship.kube import Client, kinds

MEMBER = "frankfurt"
SPDY = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false", "KUBECTL_PORT_FORWARD_WEBSOCKETS": "false"}
PATIENCE = 60.0


@dataclass(frozen=True)
class Place:
    namespace: str
    pod: str


@pytest.fixture
async def place(plane: EmbeddedPlane) -> AsyncIterator[Place]:
    """A namespace with a pod that runs in the member."""
    await let_pods_answer(plane)
    name = f"streams-{uuid.uuid4().hex[:6]}"
    async with (
        Client(await plane.instance_connection()) as instance,
        Client(await plane.members.connection(MEMBER)) as member,
    ):
        await instance.create(kinds.NAMESPACES, {"metadata": {"name": name}})
        await instance.create(kinds.DEPLOYMENTS, deployment("web", replicas=1), namespace=name)
        await instance.create(kinds.PROPAGATION_POLICIES, policy("web", clusters=[MEMBER]), namespace=name)
        async with asyncio.timeout(PATIENCE):
            while True:
                pods = await member.list(kinds.PODS, namespace=name)
                if pods.items and pods.items[0]["status"].get("phase") == "Running":
                    break
                await asyncio.sleep(0.2)
        yield Place(name, pods.items[0]["metadata"]["name"])
        await instance.delete(kinds.NAMESPACES, name)


@pytest.fixture
async def admin(plane: EmbeddedPlane, engine: Engine, tmp_path: Path) -> Kubectl:
    return await through_entrance(plane, engine, tmp_path, member=MEMBER)


@asynccontextmanager
async def running(kubectl: Kubectl, *arguments: str, stdin: bool = False) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await kubectl.start(*arguments, stdin=stdin)
    try:
        yield process
    finally:
        await end(process)


async def line_of(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE):
        return (await process.stdout.readline()).decode().strip()


@pytest.mark.parametrize("environment", [{}, SPDY], ids=["websocket", "spdy"])
async def test_a_command_runs_in_a_pod(admin: Kubectl, place: Place, environment: dict[str, str]) -> None:
    kubectl = replace(admin, environment=environment)
    assert await kubectl.ok("exec", "-n", place.namespace, place.pod, "--", "echo", "from inside") == "from inside\n"
    failed = await kubectl("exec", "-n", place.namespace, place.pod, "--", "sh", "-c", "echo no >&2; exit 7")
    assert (failed.code != 0, failed.err.splitlines()[0]) == (True, "no")
    async with running(kubectl, "exec", "-i", "-n", place.namespace, place.pod, "--", "cat", stdin=True) as terminal:
        assert terminal.stdin is not None
        for word in ("one", "two"):
            terminal.stdin.write(f"{word}\n".encode())
            assert await line_of(terminal) == word


async def test_a_terminal_is_opened_as_people_do(admin: Kubectl, place: Place) -> None:
    """`exec -it`: kubectl has a terminal itself, and the pod gets one."""
    ours, theirs = os.openpty()
    try:
        process = await asyncio.create_subprocess_exec(
            *(admin.binary, "exec", "-it", "-n", place.namespace, place.pod, "--", "sh", "-c", "echo opened; cat"),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={"HOME": str(admin.kubeconfig.parent), "KUBECONFIG": str(admin.kubeconfig), "PATH": os.environ["PATH"]},
        )
        try:
            assert "opened" in await shown(ours, "opened")
            os.write(ours, b"typed\n")
            assert "typed" in await shown(ours, "typed")
        finally:
            await end(process)
    finally:
        os.close(ours)
        os.close(theirs)


async def shown(terminal: int, word: str) -> str:
    """What a terminal shows, once a word is in it."""
    seen = ""
    async with asyncio.timeout(PATIENCE):
        while word not in seen:
            seen += (await asyncio.to_thread(os.read, terminal, 4096)).decode(errors="replace")
    return seen


async def test_much_passes_in_both_directions(admin: Kubectl, place: Place) -> None:
    size = 8 << 20
    command = f"head -c {size} /dev/zero | tr '\\0' x"
    out = await admin.ok("exec", "-n", place.namespace, place.pod, "--", "sh", "-c", command)
    assert len(out) == size
    count = f"head -c {size} | wc -c"
    fed = await admin("exec", "-i", "-n", place.namespace, place.pod, "--", "sh", "-c", count, stdin="y" * size)
    assert fed.out.strip() == str(size)


@pytest.mark.parametrize("environment", [{}, SPDY], ids=["websocket", "spdy"])
async def test_files_are_copied_out_of_a_pod(
    admin: Kubectl, place: Place, tmp_path: Path, environment: dict[str, str]
) -> None:
    """Into one they are not with kwok, whoever asks it: it does not tell a command that its input has ended."""
    kubectl = replace(admin, environment=environment)
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(os.urandom(3 << 20))
    await kubectl.ok("cp", f"{place.namespace}/{place.pod}:{source}", str(target))
    assert target.read_bytes() == source.read_bytes()


async def test_logs_are_read_and_followed(plane: EmbeddedPlane, admin: Kubectl, place: Place) -> None:
    word = uuid.uuid4().hex
    write_log(plane, word)
    assert word in await admin.ok("logs", "-n", place.namespace, place.pod)
    async with running(admin, "logs", "-f", "--tail=1", "-n", place.namespace, place.pod) as following:
        later = uuid.uuid4().hex
        while await line_of(following) != word:
            pass
        write_log(plane, later)
        assert await line_of(following) == later


@pytest.mark.parametrize("environment", [{}, SPDY], ids=["websocket", "spdy"])
async def test_ports_are_forwarded(admin: Kubectl, place: Place, environment: dict[str, str]) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.readline()).upper())
        writer.close()

    kubectl = replace(admin, environment=environment)
    async with (
        await asyncio.start_server(answer, "127.0.0.1", PORT),
        running(kubectl, "port-forward", "-n", place.namespace, place.pod, ":80") as forwarding,
    ):
        port = int((await line_of(forwarding)).split(" ->")[0].rpartition(":")[2])
        for _ in range(3):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"hello\n")
            async with asyncio.timeout(PATIENCE):
                assert await reader.readline() == b"HELLO\n"
            writer.close()


@pytest.fixture
async def ann(people: People) -> Person:
    return await people.person("ann")


async def test_a_person_of_two_groups_gets_a_terminal_and_loses_it(
    plane: EmbeddedPlane, engine: Engine, people: People, ann: Person, place: Place, tmp_path: Path
) -> None:
    """The way from a binding of a group to a command in a pod of a member, and back."""
    editors, viewers = await people.group("editors", ann), await people.group("viewers", ann)
    for_editors = await people.bind(editors, "editor", instance="demo", namespace=place.namespace)
    await people.bind(viewers, "viewer", instance="demo", namespace=place.namespace)
    token = ann.client.headers["Authorization"].removeprefix("Bearer ")
    on_member = await through_entrance(plane, engine, tmp_path, token=token, member=MEMBER)
    on_instance = await through_entrance(plane, engine, tmp_path, token=token)
    here = ("-n", place.namespace)

    async def may_exec() -> bool:
        return (await on_member("exec", *here, place.pod, "--", "true")).code == 0

    await within(may_exec, seconds=PATIENCE)
    assert "web" in await on_instance.ok("get", "deployments", *here)
    assert place.pod in await on_member.ok("get", "pods", *here)
    for elsewhere in ("default", "karmada-cluster", "kube-system"):
        assert (await on_instance("get", "deployments", "-n", elsewhere)).code != 0
        assert (await on_member("get", "pods", "-n", elsewhere)).code != 0
    for everywhere in ("pods", "secrets", "nodes"):
        assert (await on_member("get", everywhere, "-A")).code != 0

    async with (
        running(on_member, "exec", "-i", *here, place.pod, "--", "cat", stdin=True) as terminal,
        running(on_member, "logs", "-f", *here, place.pod) as logs,
        running(on_instance, "get", "deployments", *here, "-w") as watch,
    ):
        assert terminal.stdin is not None
        terminal.stdin.write(b"here\n")
        assert await line_of(terminal) == "here"
        await line_of(watch)
        await people.unbind(for_editors)
        async with asyncio.timeout(PATIENCE):
            await terminal.wait()
        assert (await on_member("exec", *here, place.pod, "--", "true")).code != 0
        # The other group still sees.
        assert watch.returncode is None
        assert logs.returncode is None
        assert "web" in await on_instance.ok("get", "deployments", *here)
        assert (await on_instance("delete", "deployment", "web", *here)).code != 0


async def test_a_refused_upgrade_leaves_no_connection(plane: EmbeddedPlane, place: Place) -> None:
    """After a refusal the connection speaks HTTP with us, and with nobody behind us."""
    async with entrance_of(plane) as admin:
        base = f"/apis/kairship.io/v1alpha1/instances/demo/clusters/{MEMBER}/proxy/api/v1"
        path = f"{base}/namespaces/{place.namespace}/pods/no-such-pod/exec?command=true&stdout=true"
        upgrade = {
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
            "Sec-WebSocket-Protocol": "v5.channel.k8s.io",
        }
        async with admin.rest.get(path, headers={**admin.headers, **upgrade}) as refused:
            assert refused.status == 404
            assert json.loads(await refused.read())["kind"] == "Status"
        version = f"{base.removesuffix('/api/v1')}/version"
        async with admin.rest.get(version, headers=admin.headers) as next_one:
            assert next_one.status == 200
