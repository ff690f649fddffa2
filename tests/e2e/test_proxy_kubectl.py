"""kubectl and helm through the entrance get the same answers as from the instance itself."""

import asyncio
import difflib
import json
import shlex
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from support.kubectl import Done, Kubectl, ageless, direct, end, through_entrance
from support.not_yet import NotYet
from support.waiting import PATIENCE, eventually

from kairship.embedded import EmbeddedPlane
from kairship.engine import Engine

READS = [
    "get deployments,clusters -A",
    "get deployments -A -o wide",
    "get deployments -n default hello -o json",
    "get deployments -n default hello -o yaml --show-managed-fields",
    "get deployments -A -l app=hello --show-labels",
    "get deployments -A -l 'app!=hello,tier notin (db)'",
    "get deployments -A --field-selector metadata.name=hello -o name",
    "get deployments -n default hello -o jsonpath={.spec.replicas}",
    "get configmaps -A --chunk-size=2 -o name --sort-by=.metadata.name",
    "get propagationpolicies,resourcebindings -A -o custom-columns=NAME:.metadata.name,NS:.metadata.namespace",
    "get namespaces -o wide",
    "get clusters.cluster.karmada.io -o wide",
    "get crd -o name",
    "get deployments -n default no-such-thing",
    "get no-such-kind",
    "describe deployment -n default hello",
    "describe cluster.cluster.karmada.io frankfurt",
    "explain deployment.spec.strategy",
    "explain propagationpolicy.spec.placement --recursive",
    "api-resources --sort-by=name",
    "api-versions",
    "version -o json",
    "get --raw /apis/apps/v1",
    "get --raw /openapi/v3/apis/apps/v1",
    "rollout history deployment -n default hello",
    "auth can-i create deployments -n default",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kubectl")


@pytest.fixture
async def kubectl(plane: EmbeddedPlane, engine: Engine, folder: Path) -> Kubectl:
    return await through_entrance(plane, engine, folder)


@pytest.fixture
async def original(plane: EmbeddedPlane, engine: Engine, folder: Path) -> Kubectl:
    return await direct(plane, engine, folder)


@pytest.fixture
async def home(kubectl: Kubectl) -> AsyncIterator[str]:
    """A namespace of the test's own."""
    name = f"proxy-{uuid.uuid4().hex[:8]}"
    await kubectl.ok("create", "namespace", name)
    yield name
    await kubectl.ok("delete", "namespace", name, "--wait=false")


def deployment(name: str, replicas: int = 1, image: str = "nginx:1.29", app: str = "") -> str:
    labels = {"app": app or name}
    return json.dumps(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "labels": labels},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "web", "image": image}]},
                },
            },
        }
    )


@pytest.mark.parametrize("command", READS)
async def test_reads_are_the_same_as_from_the_instance(kubectl: Kubectl, original: Kubectl, command: str) -> None:
    """Repeats both reads until they agree: the index may lag a moment, and other tests write meanwhile."""
    arguments = shlex.split(command)

    async def equal() -> NotYet | bool:
        mine, theirs = _comparable(await kubectl(*arguments)), _comparable(await original(*arguments))
        difference = difflib.unified_diff(mine, theirs, "through", "direct", n=1, lineterm="")
        return mine == theirs or NotYet("\n".join(difference))

    await eventually(equal, f"the same output of kubectl {command}")


def _comparable(done: Done) -> list[str]:
    """The lines of the output without ages, the exit code, and the errors."""
    errors = [line for line in done.err.splitlines() if "memcache.go" not in line]
    return [*done.ageless.splitlines(), f"exit code {done.code}", *errors]


async def test_objects_are_made_changed_and_deleted(kubectl: Kubectl, home: str) -> None:
    in_home = ("-n", home)
    await kubectl.ok("apply", *in_home, "-f", "-", stdin=deployment("web"))
    assert "unchanged" in await kubectl.ok("apply", *in_home, "-f", "-", stdin=deployment("web"))
    differing = await kubectl("diff", *in_home, "-f", "-", stdin=deployment("web", replicas=3))
    assert differing.code == 1
    assert "replicas: 3" in differing.out
    await kubectl.ok("apply", *in_home, "--server-side", "--force-conflicts", "-f", "-", stdin=deployment("web", 2))
    await kubectl.ok("scale", *in_home, "deployment/web", "--replicas=4")
    assert await kubectl.ok("get", *in_home, "deployment/web", "-o", "jsonpath={.spec.replicas}") == "4"
    for kind, patch in {
        "strategic": '{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"nginx:1.30"}]}}}}',
        "merge": '{"metadata":{"annotations":{"a":"b"}}}',
        "json": '[{"op":"add","path":"/metadata/labels/x","value":"y"}]',
    }.items():
        await kubectl.ok("patch", *in_home, "deployment/web", f"--type={kind}", "-p", patch)
    found = json.loads(await kubectl.ok("get", *in_home, "deployment/web", "-o", "json"))
    assert found["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:1.30"
    assert found["metadata"]["labels"]["x"] == "y"
    await kubectl.ok("patch", *in_home, "deployment/web", "--dry-run=server", "-p", '{"spec":{"replicas":9}}')
    assert await kubectl.ok("get", *in_home, "deployment/web", "-o", "jsonpath={.spec.replicas}") == "4"
    await kubectl.ok("label", *in_home, "deployment/web", "z=1")
    await kubectl.ok("create", *in_home, "configmap", "one", "--from-literal=a=b")
    await kubectl.ok("create", *in_home, "secret", "generic", "quiet", "--from-literal=a=b")
    assert await kubectl.ok("get", *in_home, "secret/quiet", "-o", "jsonpath={.data.a}") == "Yg=="
    await kubectl.ok("delete", *in_home, "deployments", "-l", "z=1")
    await kubectl.ok("wait", *in_home, "--for=delete", "deployment/web", f"--timeout={PATIENCE:g}s")
    await kubectl.ok("delete", *in_home, "configmaps", "--all")


async def test_an_object_is_edited(kubectl: Kubectl, home: str) -> None:
    """`kubectl edit`: kubectl sends what the editor changed as a patch."""
    await kubectl.ok("create", "configmap", "edited", "-n", home, "--from-literal=colour=red")
    editing = replace(kubectl, environment={"KUBE_EDITOR": "sed -i s/red/blue/"})
    await editing.ok("edit", "configmap", "edited", "-n", home)
    assert await kubectl.ok("get", "configmap", "edited", "-n", home, "-o", "jsonpath={.data.colour}") == "blue"


WATCHES = (
    "get configmaps -w -l app=watched",
    "get configmaps -w -l app=watched -o json",
    "get configmaps -w -l app=watched -o name",
    "get deployments -w -l app=watched -o wide --show-labels",
    "get deployments -w -l app=watched -o wide --output-watch-events",
)


async def test_watches_tell_the_same_as_from_the_instance(kubectl: Kubectl, original: Kubectl, home: str) -> None:
    """Two watches side by side show the same objects and then the same changes, in the same order."""

    async def change(name: str, text: str) -> None:
        labels = {"app": "watched"}
        configmap = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "labels": labels},
            "data": {"text": text},
        }
        for manifest in (json.dumps(configmap), deployment(name, app="watched", image=f"nginx:{text}")):
            await original.ok("apply", "-n", home, "-f", "-", stdin=manifest)

    async def shows(name: str) -> bool:
        return all([name in await kubectl.ok("get", kind, "-n", home) for kind in ("configmaps", "deployments")])

    await change("early", "1")
    await eventually(lambda: shows("early"), "the first objects in a list")
    async with AsyncExitStack() as held:
        pairs = [
            [await held.enter_async_context(_watching(each, command, home)) for each in (kubectl, original)]
            for command in WATCHES
        ]
        for watch in (watch for pair in pairs for watch in pair):
            await watch.until("early")
        await change("late", "2")
        await change("early", "3")
        await original.ok("delete", "configmap,deployment", "late", "-n", home)
        await change("last", "4")
        for mine, theirs in pairs:
            for watch in (mine, theirs):
                await watch.until("last")
            await eventually(partial(_agree, mine, theirs), "the same output of both watches")


class _Watch:
    """A kubectl that watches, and what it has printed so far."""

    def __init__(self, printing: asyncio.StreamReader) -> None:
        self._printing = printing
        self.printed = ""

    async def until(self, word: str) -> None:
        async with asyncio.timeout(PATIENCE):
            while word not in self.printed:
                await self.more()

    async def more(self) -> None:
        read = await self._printing.read(1 << 16)
        assert read, self.printed
        self.printed += read.decode()


@asynccontextmanager
async def _watching(kubectl: Kubectl, command: str, home: str) -> AsyncIterator[_Watch]:
    process = await kubectl.start(*command.split(), "-n", home)
    assert process.stdout is not None
    try:
        yield _Watch(process.stdout)
    finally:
        await end(process)


async def _agree(mine: _Watch, theirs: _Watch) -> bool:
    if ageless(mine.printed) == ageless(theirs.printed):
        return True
    for watch in (mine, theirs):
        with suppress(TimeoutError):
            async with asyncio.timeout(0.2):
                await watch.more()
    return False


async def test_a_rollout_is_waited_for(kubectl: Kubectl, home: str) -> None:
    await kubectl.ok("apply", "-n", home, "-f", "-", stdin=deployment("web"))
    policy = {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": "web"},
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}],
            "placement": {"clusterAffinity": {"clusterNames": ["frankfurt"]}},
        },
    }
    await kubectl.ok("create", "-n", home, "-f", "-", stdin=json.dumps(policy))
    within = f"--timeout={PATIENCE:g}s"
    await kubectl.ok("rollout", "status", "-n", home, "deployment/web", within, timeout=2 * PATIENCE)
    available = "--for=jsonpath={.status.availableReplicas}=1"
    await kubectl.ok("wait", "-n", home, available, "deployment/web", within, timeout=2 * PATIENCE)


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("get componentstatuses", "list componentstatuses is not available through the plane"),
        (
            "get --raw /apis/cluster.karmada.io/v1alpha1/clusters/frankfurt/proxy/api",
            "karmada.io/proxy is not available",
        ),
        (
            "get --raw /apis/cluster.karmada.io/v1alpha1/clusters/*/proxy/api",
            "karmada.io/proxy is not available",
        ),
        ("get --raw /metrics", "get /metrics is not available"),
        ("get --raw /debug/pprof", "get /debug/pprof is not available"),
        ("get csr", "certificatesigningrequests.certificates.k8s.io is not available"),
        ("get configmaps --as=somebody", "impersonation is not possible"),
    ],
)
async def test_some_requests_are_refused_to_every_caller(kubectl: Kubectl, command: str, complaint: str) -> None:
    done = await kubectl(*command.split())
    assert done.code != 0
    assert complaint in done.err


async def test_helm_installs_upgrades_rolls_back_and_uninstalls(
    plane: EmbeddedPlane, engine: Engine, kubectl: Kubectl, home: str, tmp_path: Path
) -> None:
    chart = tmp_path / "shop"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: shop\nversion: 0.1.0\n")
    (chart / "values.yaml").write_text("greeting: hello\n")
    (chart / "templates" / "config.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop}\ndata: {greeting: {{ .Values.greeting }}}\n"
    )
    helm = Kubectl(engine.binary("helm"), kubectl.kubeconfig)

    async def greeting() -> str:
        return await kubectl.ok("get", "configmap", "shop", "-n", home, "-o", "jsonpath={.data.greeting}")

    await helm.ok("install", "shop", str(chart), "-n", home, "--wait")
    assert await greeting() == "hello"
    await helm.ok("upgrade", "shop", str(chart), "-n", home, "--set", "greeting=servus", "--wait")
    assert await greeting() == "servus"
    await helm.ok("rollback", "shop", "1", "-n", home, "--wait")
    assert await greeting() == "hello"
    assert "shop" in await helm.ok("list", "-n", home)
    await helm.ok("uninstall", "shop", "-n", home, "--wait")
    assert (await kubectl("get", "configmap", "shop", "-n", home)).code != 0
