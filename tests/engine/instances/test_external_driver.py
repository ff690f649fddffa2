"""Adopting an existing Karmada. Tests that only read use the demo instance; others have an instance of their own."""

import datetime as dt
import secrets
from collections.abc import AsyncIterator, Iterator, Sequence

import msgspec
import pytest
from support.instances import OwnInstance, own_instance
from support.waiting import eventually

from kairship.controlplane.karmada import AGGREGATED_APISERVER, CONTROLLER_MANAGER, SCHEDULER, KarmadaSettings
from kairship.embedded import EmbeddedPlane
from kairship.engine import Engine
from kairship.instances.access_review import missing_rights
from kairship.instances.drivers import (
    AdoptRefused,
    ComponentHealth,
    DesiredInstance,
    ExternalDriver,
    StepFailed,
    run_steps,
)
from kairship.instances.drivers.external.claim import NAME, NAMESPACE
from kairship.instances.drivers.external.required_rights import NEEDED
from kairship.kube import AddressRule, Client, ConnectFailed, Connection, NotFound, Object, Unauthorized, kinds


def cluster_role(name: str) -> Object:
    """A role with exactly the permissions that an adoption needs."""
    rules = [
        {"apiGroups": [right.group], "resources": [right.resource], "verbs": list(right.verbs)} for right in NEEDED
    ]
    return {"metadata": {"name": name}, "rules": rules}


class Owner:
    """The owner of a Karmada, and the credentials that the owner gives to the plane."""

    def __init__(self, admin: Client) -> None:
        self.admin = admin
        self._accounts: list[str] = []

    async def account(self, role: Object) -> Connection:
        """Returns the connection of a service account with the permissions of `role`, and with its name."""
        name = role["metadata"]["name"]
        self._accounts.append(name)
        await self.admin.create(kinds.SERVICE_ACCOUNTS, {"metadata": {"name": name}}, namespace="default")
        await self.admin.create(kinds.CLUSTER_ROLES, role)
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
        binding = {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}
        await self.admin.create(kinds.CLUSTER_ROLE_BINDINGS, binding)
        token = await self.admin.create(
            kinds.SERVICE_ACCOUNTS,
            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}},
            namespace="default",
            name=name,
            subresource="token",
        )
        given = self.admin.connection
        connection = Connection(server=given.server, ca=given.ca, token=token["status"]["token"])
        async with Client(connection) as client:

            async def in_effect() -> bool:
                return not await missing_rights(client, NEEDED[:1])

            # The API server itself hears of the role and of its binding a moment after they are stored.
            await eventually(in_effect, f"the permissions of {name}")
        return connection

    async def clean_up(self) -> None:
        for name in self._accounts:
            await self.admin.delete(kinds.CLUSTER_ROLE_BINDINGS, name, missing_ok=True)
            await self.admin.delete(kinds.CLUSTER_ROLES, name, missing_ok=True)
            await self.admin.delete(kinds.SERVICE_ACCOUNTS, name, namespace="default", missing_ok=True)


@pytest.fixture
async def demo(plane: EmbeddedPlane) -> AsyncIterator[Owner]:
    async with Client(await plane.instance_connection()) as admin:
        owner = Owner(admin)
        yield owner
        await owner.clean_up()


@pytest.fixture(scope="module")
def karmada(plane: EmbeddedPlane, engine: Engine) -> Iterator[OwnInstance]:
    with own_instance(plane, engine) as made:
        yield made


def driver_of(connections: dict[str, Connection], *, allowed: Sequence[str] = ("127.0.0.0/8",)) -> ExternalDriver:
    async def kubeconfig_of(uid: str) -> bytes:
        return connections[uid].to_kubeconfig(name=uid)

    return ExternalDriver(kubeconfig_of, addresses=AddressRule.allowing(allowed))


def wanted(uid: str, version: str = "") -> DesiredInstance:
    return DesiredInstance(uid=uid, name=f"called-{uid}", settings=KarmadaSettings(version=version))


async def refusal(
    connection: Connection, *, version: str = "", allowed: Sequence[str] = ("127.0.0.0/8",)
) -> StepFailed:
    """Returns the error of an adoption that must fail; it has left no claim."""
    driver = driver_of({"uid": connection}, allowed=allowed)
    with pytest.raises(StepFailed) as raised:
        await run_steps(await driver.converge(wanted("uid", version)))
    return raised.value


def a_name() -> str:
    return f"test-{secrets.token_hex(4)}"


async def mark_in(client: Client) -> dict[str, str] | None:
    try:
        found = await client.get(kinds.CONFIGMAPS, NAME, namespace=NAMESPACE)
    except NotFound:
        return None
    return dict(found["data"])


async def is_marked_by(client: Client, uid: str) -> bool:
    """Whether that instance has claimed it. Other tests adopt the demo instance of the shared plane for a while."""
    return (await mark_in(client) or {}).get("uid") == uid


async def test_a_cluster_that_is_no_karmada(plane: EmbeddedPlane) -> None:
    member = await plane.members.connection("oregon")
    failed = await refusal(member)
    assert failed.step.name == "recognise"
    assert isinstance(failed.__cause__, AdoptRefused)
    assert "is no Karmada" in str(failed)
    async with Client(member) as client:
        assert not await is_marked_by(client, "uid")


async def test_what_cannot_be_reached_or_does_not_let_us_in(demo: Owner) -> None:
    there = demo.admin.connection
    failed = await refusal(msgspec.structs.replace(there, server="https://127.0.0.1:1"))
    assert failed.step.name == "reach"
    assert isinstance(failed.__cause__, ConnectFailed)  # it may come back, so the adoption is not refused

    failed = await refusal(Connection(server=there.server, ca=there.ca, token="expired"))
    assert failed.step.name == "reach"
    assert isinstance(failed.__cause__, Unauthorized)

    failed = await refusal(Connection(server=there.server, insecure_skip_tls_verify=True, token="any"))
    assert isinstance(failed.__cause__, AdoptRefused)


async def test_one_at_an_address_that_is_not_allowed(demo: Owner) -> None:
    """The server exists and is a Karmada, but a user could name it to probe the network of this machine."""
    failed = await refusal(demo.admin.connection, allowed=("127.0.0.9",))
    assert failed.step.name == "reach"
    assert isinstance(failed.__cause__, AdoptRefused)
    assert "the operator can allow it" in str(failed)
    assert not await is_marked_by(demo.admin, "uid")


async def test_rights_that_are_missing_are_named(demo: Owner) -> None:
    role = cluster_role(a_name())
    kept = [rule for rule in role["rules"] if rule["resources"] not in (["users"], ["serviceaccounts/token"])]
    for rule in kept:
        if rule["resources"] == ["works"]:
            rule["verbs"] = ["get", "list", "watch"]
    failed = await refusal(await demo.account({**role, "rules": kept}))
    assert failed.step.name == "rights"
    assert isinstance(failed.__cause__, AdoptRefused)
    _, _, missing = str(failed).partition("Missing: ")
    assert [entry.partition(" (")[0] for entry in missing.split("; ")] == [
        "create, update, patch, delete works.work.karmada.io",
        "create serviceaccounts/token",
        "impersonate users",
    ]


async def test_what_a_karmada_tells_of_itself(demo: Owner) -> None:
    driver = driver_of({"uid": demo.admin.connection})
    found = await driver.identity("uid")
    namespace = await demo.admin.get(kinds.NAMESPACES, "kube-system")
    assert found.uid == namespace["metadata"]["uid"]
    assert found.level == "v1.18"
    assert found.kubernetes_version == (await demo.admin.version()).git_version

    failed = await refusal(demo.admin.connection, version="v1.17.3")
    assert failed.step.name == "version"
    assert isinstance(failed.__cause__, AdoptRefused)
    assert "not Karmada v1.17.3: it serves the API of v1.18" in str(failed)


async def test_adopted_by_one_at_a_time_used_and_let_go(karmada: OwnInstance) -> None:
    processes = await karmada.pids()
    async with await karmada.client() as admin:
        limited = await Owner(admin).account(cluster_role(a_name()))
        gone = msgspec.structs.replace(admin.connection, server="https://127.0.0.1:1")
        driver = driver_of({"one": limited, "two": admin.connection, "gone": gone})

        await run_steps(await driver.converge(wanted("one", version=karmada.version)))
        assert await mark_in(admin) == {"uid": "one", "name": "called-one"}
        await run_steps(await driver.converge(wanted("one")))  # again, as after a kill
        async with Client(await driver.connection("one")) as client:
            await client.list(kinds.CLUSTERS)

        with pytest.raises(StepFailed, match="adopted already, as instance 'called-one'") as raised:
            await run_steps(await driver.converge(wanted("two")))
        assert raised.value.step.name == "claim"
        await run_steps(await driver.delete("two"))  # has no claim to remove
        await run_steps(await driver.delete("gone"))  # must not wait for a server that never comes back
        assert await mark_in(admin) == {"uid": "one", "name": "called-one"}

        await run_steps(await driver.delete("one"))
        assert await mark_in(admin) is None
        await run_steps(await driver.converge(wanted("two")))
        assert await mark_in(admin) == {"uid": "two", "name": "called-two"}
        await run_steps(await driver.delete("two"))
    assert await karmada.pids() == processes


async def test_health_as_it_shows_from_outside(karmada: OwnInstance) -> None:
    there = await karmada.driver.connection(karmada.uid)
    driver = driver_of({"uid": there, "gone": msgspec.structs.replace(there, server="https://127.0.0.1:1")})

    async def seen() -> dict[str, ComponentHealth]:
        return {part.component: part for part in await driver.health("uid")}

    async def all_well() -> bool:
        # A component that does not answer within 3 s is ill or left out, which a busy machine can cause.
        return {name: part.healthy for name, part in (await seen()).items()} == {
            "kube-apiserver": True,
            "etcd": True,
            AGGREGATED_APISERVER: True,
        }

    await eventually(all_well, "every component that shows being healthy")
    [only] = await driver.health("gone")
    assert (only.component, only.healthy) == ("kube-apiserver", False)
    assert "cannot connect" in only.reason

    # No component elects a leader here, so the test writes leases: one is renewed, one is an hour old.
    now = dt.datetime.now(dt.UTC)
    async with await karmada.client() as admin:
        await renew(admin, SCHEDULER, now)
        await renew(admin, CONTROLLER_MANAGER, now - dt.timedelta(hours=1))

    async def leaders() -> dict[str, ComponentHealth] | None:
        parts = await seen()
        return parts if {SCHEDULER, CONTROLLER_MANAGER} <= parts.keys() else None

    parts: dict[str, ComponentHealth] = await eventually(leaders, "the leases being seen")
    assert parts[SCHEDULER].healthy
    assert not parts[CONTROLLER_MANAGER].healthy
    assert "has not renewed its lease for" in parts[CONTROLLER_MANAGER].reason

    async def fault() -> str | None:
        """The reported fault of the aggregated API server, beside an API server that is well; empty when both are."""
        parts = await seen()
        found = parts.get(AGGREGATED_APISERVER)
        return found.reason if found is not None and parts["kube-apiserver"].healthy else None

    async def healthy() -> bool:
        return await fault() == ""

    name = f"{karmada.group}/{AGGREGATED_APISERVER}"
    await karmada.supervisor.stop(name)
    await eventually(fault, "the loss being seen")
    # Karmada's own API is down for a while: that is no reason to refuse the adoption for good.
    failed = await refusal(there)
    assert not isinstance(failed.__cause__, AdoptRefused)
    await karmada.supervisor.start(name)
    await eventually(healthy, "the return being seen")


async def renew(client: Client, leader: str, time: dt.datetime) -> None:
    spec = {"holderIdentity": "one", "leaseDurationSeconds": 15, "renewTime": time.isoformat("T", "microseconds")}
    await client.create(kinds.LEASES, {"metadata": {"name": leader}, "spec": spec}, namespace="karmada-system")
