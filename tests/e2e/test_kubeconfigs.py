"""Kubeconfigs that Kairship issues lead to one instance, through the entrance, and can be revoked."""

import asyncio
import os
import stat
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.entrance import Client
from support.kubectl import Kubectl, end
from support.people import GHIPPO, PASSWORD, WITHIN, People, Person, message_of
from support.waiting import PATIENCE, eventually

from kairship.embedded import EmbeddedPlane, plane_processes
from kairship.engine import Engine
from kairship.rpc import native_access
from kairship.rpc.native_access import NativeEndpoint

BASE = "/apis/kairship.io/v1alpha1"
MEMBER = "frankfurt"


@pytest.fixture
async def ann(people: People) -> Person:
    """A user who administers the instance."""
    ann = await people.person("ann")
    await people.bind(ann, "admin", instance="demo")
    await eventually(lambda: may_list(ann.client), "the rights of ann")
    return ann


async def may_list(client: Client) -> bool:
    path = f"{BASE}/instances/demo/proxy/api/v1/namespaces/default/configmaps"
    return (await client.request("GET", path)).status == 200


async def issue(client: Client, **fields: Any) -> Any:
    reply = await client.request("POST", f"{BASE}/instances/demo/kubeconfig", fields)
    assert reply.status == 200, reply.body
    return reply.json


def kubectl(engine: Engine, folder: Path, content: str, **environment: str) -> Kubectl:
    folder.mkdir(exist_ok=True)
    path = folder / "kubeconfig"
    path.write_text(content)
    return Kubectl(engine.binary("kubectl"), path, environment)


@asynccontextmanager
async def watching(kubectl: Kubectl) -> AsyncIterator[asyncio.subprocess.Process]:
    """A watch that has shown its first line."""
    process = await kubectl.start("get", "namespaces", "-w", "-o", "name")
    try:
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            assert await process.stdout.readline()
        yield process
    finally:
        await end(process)


async def test_a_kubeconfig_leads_through_the_entrance_and_is_revoked_at_once(
    plane: EmbeddedPlane, engine: Engine, ann: Person, tmp_path: Path
) -> None:
    began = time.time()
    issued = await issue(ann.client, expirationSeconds="600")
    assert issued["instance"] == "demo"
    assert began + 590 < int(issued["expiresAt"]) < time.time() + 601
    document = yaml.safe_load(issued["kubeConfigString"])
    entrance = await plane_processes.ensure_entrance(plane.supervisor, plane.home)
    assert document["clusters"][0]["cluster"]["server"] == entrance.server + NativeEndpoint("demo").path
    [user] = document["users"]
    assert user["user"].keys() == {"token"}  # and neither a certificate nor a key of the instance
    hers = kubectl(engine, tmp_path, issued["kubeConfigString"])
    assert "configmap/hers created" in await hers.ok("create", "configmap", "hers", "--dry-run=server")
    # The instance sees the user's own identity.
    assert f"kairship:user:{ann.id}" in await hers.ok("auth", "whoami")

    token = user["user"]["token"]
    with_it = ann.client.named(token)
    for path in ("/instances", "/instances/demo", "/clusters"):
        refused = await with_it.request("GET", BASE + path)
        assert refused.status in {403, 404}, path
    opened = await with_it.request("GET", f"{GHIPPO}/current-user")
    assert (opened.status, "instance demo" in message_of(opened)) == (403, True)
    another = await with_it.request("POST", f"{BASE}/instances/demo/kubeconfig", {})
    assert another.status == 403
    elsewhere = await with_it.request("GET", f"{BASE}/instances/elsewhere/proxy/version")
    assert elsewhere.status == 404

    listed = (await ann.get(f"{GHIPPO}/current-user/access-tokens")).json["items"]
    assert [(each["id"], each["instance"]) for each in listed] == [(issued["tokenId"], "demo")]
    async with watching(hers) as watch:
        revoked = await ann.client.request("DELETE", f"{GHIPPO}/current-user/access-tokens/{issued['tokenId']}")
        assert revoked.status == 200
        async with asyncio.timeout(PATIENCE):
            await watch.wait()
    after = await hers("get", "configmaps")
    assert after.code != 0
    assert "Unauthorized" in after.err or "not valid" in after.err


async def test_a_kubeconfig_ends_with_the_access_token_that_asked_for_it(people: People, ann: Person) -> None:
    """A leaked token must not be able to outlive its revocation."""
    wish = {"name": "robot", "days": 1, "permissions": ["kairship.kubeconfigs.create", "kairship.configmaps.get"]}
    made = (await ann.client.request("POST", f"{GHIPPO}/current-user/access-tokens", wish)).json
    robot = ann.client.named(made["token"])
    issued = await issue(robot)
    assert int(issued["expiresAt"]) <= int(made["accessToken"]["expiresAt"])
    child = ann.client.named(yaml.safe_load(issued["kubeConfigString"])["users"][0]["user"]["token"])
    assert await may_list(child)
    secrets = f"{BASE}/instances/demo/proxy/api/v1/namespaces/default/secrets"
    assert (await child.request("GET", secrets)).status == 403  # it may do no more than the token that asked
    await ann.client.request("DELETE", f"{GHIPPO}/current-user/access-tokens/{made['accessToken']['id']}")
    await eventually(lambda: is_refused(child, 401), "the end of the kubeconfig", timeout=WITHIN)


async def is_refused(client: Client, status: int) -> bool:
    path = f"{BASE}/instances/demo/proxy/api/v1/namespaces/default/configmaps"
    return (await client.request("GET", path)).status == status


async def test_a_kubeconfig_of_an_unbound_or_disabled_user_is_refused(
    engine: Engine, people: People, tmp_path: Path
) -> None:
    bob = await people.person("bob")
    binding = await people.bind(bob, "admin", instance="demo")
    await eventually(lambda: may_list(bob.client), "the rights of bob")
    issued = await issue(bob.client)
    his = kubectl(engine, tmp_path, issued["kubeConfigString"])
    token = bob.client.named(yaml.safe_load(issued["kubeConfigString"])["users"][0]["user"]["token"])
    async with watching(his) as watch:
        await people.unbind(binding)
        async with asyncio.timeout(PATIENCE):
            await watch.wait()
    await eventually(lambda: is_refused(token, 404), "the end of the rights", timeout=WITHIN)
    await people.bind(bob, "admin", instance="demo")
    await eventually(lambda: may_list(token), "the rights of bob again")
    await people.do("PUT", f"users/{bob.id}", {"disabled": True})
    await eventually(lambda: is_refused(token, 401), "the token of a disabled user being refused", timeout=WITHIN)


@pytest.mark.parametrize("cluster", ["", MEMBER])
async def test_a_name_in_tls_leads_to_the_same(
    engine: Engine, ann: Person, people: People, tmp_path: Path, cluster: str
) -> None:
    """Some clients drop the path of the server's URL; with a name in TLS it has none."""
    by_path = await issue(people.admin, cluster=cluster)
    by_name = await issue(people.admin, cluster=cluster, byName=True)
    server = yaml.safe_load(by_name["kubeConfigString"])["clusters"][0]["cluster"]
    assert server["server"].count("/") == 2
    assert server["tls-server-name"] == NativeEndpoint("demo", cluster or None).host
    one = kubectl(engine, tmp_path / "path", by_path["kubeConfigString"])
    other = kubectl(engine, tmp_path / "name", by_name["kubeConfigString"])
    for command in (("get", "namespace", "default", "-o", "jsonpath={.metadata.uid}"), ("version", "-o", "json")):
        assert await one.ok(*command) == await other.ok(*command)


async def test_a_name_is_given_to_kubectl_by_hand(
    plane: EmbeddedPlane, engine: Engine, people: People, tmp_path: Path
) -> None:
    entrance = await plane_processes.ensure_entrance(plane.supervisor, plane.home)
    issued = await issue(people.admin)
    plain = kubectl(engine, tmp_path, issued["kubeConfigString"])
    at = ("--server", entrance.server)
    assert (await plain("get", "clusters.cluster.karmada.io", *at)).code != 0
    named = ("--tls-server-name", f"demo.{native_access.INSTANCE_DOMAIN}")
    assert MEMBER in await plain.ok("get", "clusters.cluster.karmada.io", *at, *named)
    # The token is for this instance only, by path and by name.
    other = ("--tls-server-name", f"other.{native_access.INSTANCE_DOMAIN}")
    refused = await plain("get", "clusters.cluster.karmada.io", *at, *other)
    assert refused.code != 0


async def test_names_that_do_not_fit_are_refused(people: People) -> None:
    wish = {"cluster": "a" * 60, "byName": True}
    refused = await people.admin.request("POST", f"{BASE}/instances/demo/kubeconfig", wish)
    assert refused.status == 400
    assert "leave byName out" in message_of(refused)


class Terminal:
    """The command line of one user, with files of its own."""

    def __init__(self, folder: Path, engine: Engine, server: str, ca: str) -> None:
        self.kubeconfig = folder / "kubeconfig"
        self._server, self._ca = server, ca
        programs = Path(sys.executable).parent
        self.environment = {
            "XDG_CONFIG_HOME": str(folder / "config"),
            "KUBECONFIG": str(self.kubeconfig),
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        }
        self.kubectl = Kubectl(engine.binary("kubectl"), self.kubeconfig, self.environment)

    async def types(self, *words: str, line: str = "") -> tuple[int, str]:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "kairship", *words),
            env=os.environ | self.environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(PATIENCE):
            out, _ = await process.communicate(f"{line}\n".encode())
        assert process.returncode is not None
        return process.returncode, out.decode()

    async def signs_in(self, person: Person) -> None:
        words = ("login", "--server", self._server, "--ca", self._ca, "--user", person.name)
        code, out = await self.types(*words, line=PASSWORD)
        assert code == 0, out


@pytest.fixture
async def terminal(plane: EmbeddedPlane, engine: Engine, tmp_path: Path) -> Terminal:
    entrance = await plane_processes.ensure_entrance(plane.supervisor, plane.home)
    return Terminal(tmp_path, engine, entrance.server, entrance.ca)


async def test_the_command_line_merges_a_context_and_lets_kubectl_in(ann: Person, terminal: Terminal) -> None:
    code, out = await terminal.types("kubeconfig", "demo")
    assert (code, "kairship login" in out) == (8, True)
    await terminal.signs_in(ann)
    terminal.kubeconfig.write_text(
        "apiVersion: v1\nkind: Config\nclusters: [{name: mine, cluster: {server: 'https://x'}}]\n"
    )
    for words in (
        ("demo",),
        ("demo", "--cluster", MEMBER, "--no-switch"),
        ("demo", "--by-name", "--context", "named", "--no-switch"),
    ):
        code, out = await terminal.types("kubeconfig", *words)
        assert code == 0, out
    document = yaml.safe_load(terminal.kubeconfig.read_text())
    assert [each["name"] for each in document["clusters"]] == [
        "mine",
        "kairship-demo",
        f"kairship-demo-{MEMBER}",
        "named",
    ]
    assert document["current-context"] == "kairship-demo"
    assert stat.S_IMODE(terminal.kubeconfig.stat().st_mode) == 0o600
    assert "token:" not in terminal.kubeconfig.read_text()
    assert MEMBER in await terminal.kubectl.ok("get", "clusters.cluster.karmada.io")
    assert MEMBER in await terminal.kubectl.ok("get", "clusters.cluster.karmada.io", "--context", "named")
    assert "default" in await terminal.kubectl.ok("get", "namespace", "default", "--context", f"kairship-demo-{MEMBER}")
    code, out = await terminal.types("kubeconfig", "nobody")
    assert (code, "no instance nobody" in out) == (1, True)
    # The token of one plane is not sent to another.
    code, out = await terminal.types("token", "--server", "https://elsewhere:8443")
    assert (code, "kairship login --server https://elsewhere:8443" in out) == (8, True)
    await terminal.types("logout")
    assert (await terminal.kubectl("get", "namespaces")).code != 0


async def test_every_role_may_use_kubectl_but_not_every_role_gets_a_token(people: People, terminal: Terminal) -> None:
    vic = await people.person("vic")
    await people.bind(vic, "viewer", instance="demo", namespace="default")
    await eventually(lambda: may_list(vic.client), "the rights of vic")
    await terminal.signs_in(vic)
    code, out = await terminal.types("kubeconfig", "demo", "--token")
    assert (code, "kairship.kubeconfigs.create is needed" in out) == (1, True)
    assert not terminal.kubeconfig.exists()
    code, out = await terminal.types("kubeconfig", "demo")
    assert code == 0, out
    await terminal.kubectl.ok("get", "configmaps", "-n", "default")
    assert (await terminal.kubectl("get", "configmaps", "-n", "kube-system")).code != 0


async def test_a_token_is_put_into_the_file_for_programs(ann: Person, terminal: Terminal) -> None:
    await terminal.signs_in(ann)
    code, out = await terminal.types("kubeconfig", "demo", "--token", "--valid", "900")
    assert code == 0, out
    await terminal.types("logout")
    assert MEMBER in await terminal.kubectl.ok("get", "clusters.cluster.karmada.io")
