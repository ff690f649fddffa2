"""kubectl and helm as callers with each role: what the roles allow is enough to look around and to install charts."""

import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import pytest_asyncio
from support.entrance_process import entrance_of
from support.kubectl import Kubectl, through_entrance
from support.not_yet import NotYet
from support.people import People, register
from support.waiting import eventually

from kairship.embedded import EmbeddedPlane
from kairship.engine import Engine
from kairship.kube import Client, kinds

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHARTS = Path(__file__).parent / "charts"
DEFINITION = "gadgets.operator.example.org"


@dataclass
class Scene:
    home: str
    """A namespace of the tests' own."""
    helm: Path
    kubectl: dict[str, Kubectl] = field(default_factory=dict)
    """By role on the instance, or with `here` after it on the namespace."""

    def helm_of(self, who: str) -> Kubectl:
        return Kubectl(self.helm, self.kubectl[who].kubeconfig)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(plane: EmbeddedPlane, engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scene]:
    found = Scene(home=f"roles-{uuid.uuid4().hex[:6]}", helm=engine.binary("helm"))
    async with (
        entrance_of(plane) as root,
        Client(await plane.global_connection()) as world,
        Client(await plane.instance_connection()) as instance,
    ):
        await register(world, "demo")
        await instance.create(kinds.NAMESPACES, {"metadata": {"name": found.home}})
        people = People(root)
        for role, namespace in (
            ("viewer", ""),
            ("editor", ""),
            ("admin", ""),
            ("viewer", found.home),
            ("admin", found.home),
        ):
            who = f"{role} here" if namespace else role
            person = await (await people.person(who.replace(" ", "-"))).with_access_token()
            await people.bind(person, role, instance="demo", namespace=namespace)
            token = person.client.headers["Authorization"].removeprefix("Bearer ")
            folder = tmp_path_factory.mktemp(role)
            kubectl = found.kubectl[who] = await through_entrance(plane, engine, folder, token=token)
            # Of an Editor or Admin, because Secrets are granted apart from what Viewers see.
            kind = "configmaps" if role == "viewer" else "secrets"

            async def arrived(kubectl: Kubectl = kubectl, kind: str = kind) -> bool | NotYet:
                done = await kubectl("get", kind, "-n", found.home)
                return done.code == 0 or NotYet(done.err)

            await eventually(arrived, f"the rights of {who}")
        yield found
        await people.clear_away()
        await instance.delete(kinds.CRDS, DEFINITION, missing_ok=True)
        await instance.delete(kinds.NAMESPACES, found.home)


@pytest.mark.parametrize("who", ["viewer", "editor", "admin", "viewer here", "admin here"])
async def test_get_all_gets_everything(scene: Scene, who: str) -> None:
    where = ("-n", scene.home) if who.endswith("here") else ("-A",)
    done = await scene.kubectl[who]("get", "all", *where)
    assert (done.code, "orbidden" in done.err) == (0, False), done.err


async def test_an_admin_of_the_instance_installs_what_operators_consist_of(scene: Scene) -> None:
    """With definitions of kinds, roles of its own, webhooks and classes; and with rights on a kind that is new."""
    name, kubectl, helm = f"{scene.home}-operator", scene.kubectl["admin"], scene.helm_of("admin")
    chart, at = str(CHARTS / "operator"), ("-n", scene.home)
    made = ("clusterrole", "clusterrolebinding", "ingressclass", "priorityclass", "validatingwebhookconfiguration")

    async def replicas() -> str:
        return await kubectl.ok("get", "deployment", name, *at, "-o", "jsonpath={.spec.replicas}")

    await helm.ok("install", name, chart, *at)
    for kind in (*made, "role", "rolebinding", "poddisruptionbudget", DEFINITION.partition(".")[0]):
        await kubectl.ok("get", kind, name, *at)
    await helm.ok("upgrade", name, chart, *at, "--set", "replicas=2")
    assert await replicas() == "2"
    await helm.ok("rollback", name, "1", *at)
    assert await replicas() == "1"
    await helm.ok("uninstall", name, *at)
    for kind in made:
        assert "NotFound" in (await kubectl("get", kind, name)).err


async def test_a_chart_that_grants_too_much_fails_and_is_uninstalled(scene: Scene) -> None:
    name, kubectl, helm = f"{scene.home}-greedy", scene.kubectl["admin"], scene.helm_of("admin")
    at = ("-n", scene.home)
    done = await helm("install", name, str(CHARTS / "operator"), *at, "--set", "grantsTooMuch=true")
    assert (done.code != 0, "attempting to grant RBAC permissions" in done.err) == (True, True), done.err
    assert "failed" in await helm.ok("list", "--all", *at, "--filter", name)
    await helm.ok("uninstall", name, *at)
    for kind in ("clusterrole", "serviceaccount"):
        assert "NotFound" in (await kubectl("get", kind, name, *at)).err


async def test_an_admin_of_a_namespace_installs_a_chart_with_roles(scene: Scene) -> None:
    name, kubectl, helm = "shop", scene.kubectl["admin here"], scene.helm_of("admin here")
    chart, at = str(CHARTS / "shop"), ("-n", scene.home)

    async def greeting() -> str:
        return await kubectl.ok("get", "configmap", name, *at, "-o", "jsonpath={.data.greeting}")

    await helm.ok("install", name, chart, *at)
    assert name in await kubectl.ok("get", "roles,rolebindings", *at)
    await helm.ok("upgrade", name, chart, *at, "--set", "greeting=servus")
    assert await greeting() == "servus"
    await helm.ok("rollback", name, "1", *at)
    assert await greeting() == "hello"
    await helm.ok("uninstall", name, *at)
    assert "NotFound" in (await kubectl("get", "rolebinding", name, *at)).err


async def test_an_api_service_is_registered_by_an_admin_of_the_instance(scene: Scene) -> None:
    """Only as a dry run: one without a server behind it would hold up the deletion of every namespace."""
    name = "v1.things.example.org"
    service = f"{{name: things, namespace: {scene.home}}}"
    spec = (
        f"{{group: things.example.org, version: v1, groupPriorityMinimum: 1, versionPriority: 1, service: {service}}}"
    )
    manifest = f"{{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {{name: {name}}}, spec: {spec}}}"
    create = ("create", "--dry-run=server", "-f", "-")
    assert name in await scene.kubectl["admin"].ok(*create, stdin=manifest)
    assert "orbidden" in (await scene.kubectl["editor"](*create, stdin=manifest)).err
