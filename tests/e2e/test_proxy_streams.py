"""exec, logs and port-forward to pods in members, through the entrance; they end when the caller loses the right."""

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
from support.people import People, Person
from support.waiting import PATIENCE, eventually

from kairship.embedded import EmbeddedPlane
from kairship.engine import Engine
from kairship.kube import Client, kinds

MEMBER = "frankfurt"
SPDY = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false", "KUBECTL_PORT_FORWARD_WEBSOCKETS": "false"}


@dataclass(frozen=True)
class RunningPod:
    namespace: str
    name: str


@pytest.fixture
async def pod(plane: EmbeddedPlane) -> AsyncIterator[RunningPod]:
    """A pod that runs in the member, in a namespace of its own."""
    await let_pods_answer(plane)
    name = f"streams-{uuid.uuid4().hex[:6]}"
    async with (
        Client(await plane.instance_connection()) as instance,
        Client(await plane.members.connection(MEMBER)) as member,
    ):
        await instance.create(kinds.NAMESPACES, {"metadata": {"name": name}})
        await instance.create(kinds.DEPLOYMENTS, deployment("web", replicas=1), namespace=name)
        await instance.create(kinds.PROPAGATION_POLICIES, policy("web", clusters=[MEMBER]), namespace=name)

        async def running() -> str | None:
            pods = (await member.list(kinds.PODS, namespace=name)).items
            return pods[0]["metadata"]["name"] if pods and pods[0]["status"].get("phase") == "Running" else None

        yield RunningPod(name, await eventually(running, "a running pod in the member"))
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
async def test_a_command_runs_in_a_pod(admin: Kubectl, pod: RunningPod, environment: dict[str, str]) -> None:
    kubectl = replace(admin, environment=environment)
    assert await kubectl.ok("exec", "-n", pod.namespace, pod.name, "--", "echo", "from inside") == "from inside\n"
    failed = await kubectl("exec", "-n", pod.namespace, pod.name, "--", "sh", "-c", "echo no >&2; exit 7")
    assert (failed.code != 0, failed.err.splitlines()[0]) == (True, "no")
    async with running(kubectl, "exec", "-i", "-n", pod.namespace, pod.name, "--", "cat", stdin=True) as terminal:
        assert terminal.stdin is not None
        for word in ("one", "two"):
            terminal.stdin.write(f"{word}\n".encode())
            assert await line_of(terminal) == word


async def test_an_interactive_terminal_is_opened(admin: Kubectl, pod: RunningPod) -> None:
    """`kubectl exec -it`: kubectl runs in a terminal, and the pod gets one."""
    ours, theirs = os.openpty()
    try:
        process = await asyncio.create_subprocess_exec(
            *(admin.binary, "exec", "-it", "-n", pod.namespace, pod.name, "--", "sh", "-c", "echo opened; cat"),
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
    """Reads what a terminal shows until a word is in it."""
    seen = ""
    async with asyncio.timeout(PATIENCE):
        while word not in seen:
            seen += (await asyncio.to_thread(os.read, terminal, 4096)).decode(errors="replace")
    return seen


async def test_megabytes_pass_in_both_directions(admin: Kubectl, pod: RunningPod) -> None:
    size = 8 << 20
    command = f"head -c {size} /dev/zero | tr '\\0' x"
    out = await admin.ok("exec", "-n", pod.namespace, pod.name, "--", "sh", "-c", command)
    assert len(out) == size
    count = f"head -c {size} | wc -c"
    fed = await admin("exec", "-i", "-n", pod.namespace, pod.name, "--", "sh", "-c", count, stdin="y" * size)
    assert fed.out.strip() == str(size)


@pytest.mark.parametrize("environment", [{}, SPDY], ids=["websocket", "spdy"])
async def test_files_are_copied_out_of_a_pod(
    admin: Kubectl, pod: RunningPod, tmp_path: Path, environment: dict[str, str]
) -> None:
    """Files cannot be copied into a pod of kwok, with or without the proxy: kwok does not close a command's input."""
    kubectl = replace(admin, environment=environment)
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(os.urandom(3 << 20))
    await kubectl.ok("cp", f"{pod.namespace}/{pod.name}:{source}", str(target))
    assert target.read_bytes() == source.read_bytes()


async def test_logs_are_read_and_followed(plane: EmbeddedPlane, admin: Kubectl, pod: RunningPod) -> None:
    word = uuid.uuid4().hex
    write_log(plane, word)
    assert word in await admin.ok("logs", "-n", pod.namespace, pod.name)
    async with running(admin, "logs", "-f", "--tail=1", "-n", pod.namespace, pod.name) as following:
        later = uuid.uuid4().hex
        while await line_of(following) != word:
            pass
        write_log(plane, later)
        assert await line_of(following) == later


@pytest.mark.parametrize("environment", [{}, SPDY], ids=["websocket", "spdy"])
async def test_ports_are_forwarded(admin: Kubectl, pod: RunningPod, environment: dict[str, str]) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.readline()).upper())
        writer.close()

    kubectl = replace(admin, environment=environment)
    async with (
        await asyncio.start_server(answer, "127.0.0.1", PORT),
        running(kubectl, "port-forward", "-n", pod.namespace, pod.name, ":80") as forwarding,
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
    plane: EmbeddedPlane, engine: Engine, people: People, ann: Person, pod: RunningPod, tmp_path: Path
) -> None:
    """A group's binding lets its members run commands in a member's pod; without the binding the terminal ends."""
    editors, viewers = await people.group("editors", ann), await people.group("viewers", ann)
    for_editors = await people.bind(editors, "editor", instance="demo", namespace=pod.namespace)
    await people.bind(viewers, "viewer", instance="demo", namespace=pod.namespace)
    token = ann.client.headers["Authorization"].removeprefix("Bearer ")
    on_member = await through_entrance(plane, engine, tmp_path, token=token, member=MEMBER)
    on_instance = await through_entrance(plane, engine, tmp_path, token=token)
    here = ("-n", pod.namespace)

    async def may_exec() -> bool:
        return (await on_member("exec", *here, pod.name, "--", "true")).code == 0

    await eventually(may_exec, "the right to run commands")
    assert "web" in await on_instance.ok("get", "deployments", *here)
    assert pod.name in await on_member.ok("get", "pods", *here)
    for elsewhere in ("default", "karmada-cluster", "kube-system"):
        assert (await on_instance("get", "deployments", "-n", elsewhere)).code != 0
        assert (await on_member("get", "pods", "-n", elsewhere)).code != 0
    for everywhere in ("pods", "secrets", "nodes"):
        assert (await on_member("get", everywhere, "-A")).code != 0

    async with (
        running(on_member, "exec", "-i", *here, pod.name, "--", "cat", stdin=True) as terminal,
        running(on_member, "logs", "-f", *here, pod.name) as logs,
        running(on_instance, "get", "deployments", *here, "-w") as watch,
    ):
        assert terminal.stdin is not None
        terminal.stdin.write(b"here\n")
        assert await line_of(terminal) == "here"
        await line_of(watch)
        await people.unbind(for_editors)
        async with asyncio.timeout(PATIENCE):
            await terminal.wait()
        assert (await on_member("exec", *here, pod.name, "--", "true")).code != 0
        # The binding of the other group still grants reading.
        assert watch.returncode is None
        assert logs.returncode is None
        assert "web" in await on_instance.ok("get", "deployments", *here)
        assert (await on_instance("delete", "deployment", "web", *here)).code != 0


async def test_a_refused_upgrade_leaves_no_connection(plane: EmbeddedPlane, pod: RunningPod) -> None:
    """After a refused upgrade the connection speaks HTTP with the entrance, and is joined to no other server."""
    async with entrance_of(plane) as admin:
        base = f"/apis/kairship.io/v1alpha1/instances/demo/clusters/{MEMBER}/proxy/api/v1"
        path = f"{base}/namespaces/{pod.namespace}/pods/no-such-pod/exec?command=true&stdout=true"
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
