"""Bindings become RBAC in a real instance and a real member, and give no other rights.

Users are impersonated as the plane does it, in the instance and through Karmada's proxy in the member. All tests of the
module use one instance and one member, and each test continues where the one before has ended.
"""

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from functools import partial

import msgspec
import pytest
from support.delivered_bindings import bind, name_of
from support.managed import ManagedInstance, World, gives, is_now, leading
from support.member_clusters import MemberCluster, member_cluster
from support.not_yet import NotYet
from support.waiting import PATIENCE, eventually

from kairship.access import AnyRight, Attributes, Role, permission_for, permissions_of
from kairship.access.catalogue.markers import is_marker
from kairship.access.delivery.binding_store import BINDING
from kairship.kube import Client, Forbidden, Impersonation, Object, Resource, kinds
from kairship.resources import AccessBinding, AccessBindingCondition, InstanceCondition, InstanceReason, find_condition

OURS = "kairship.io/access=true"
ANN, BEN, CLEO = "ann", "ben", "cleo"
RULES = Resource.of(
    "authorization.k8s.io/v1", "selfsubjectrulesreviews", kind="SelfSubjectRulesReview", namespaced=False
)


@pytest.fixture(scope="module")
def member(world: World) -> Iterator[MemberCluster]:
    with member_cluster(world.plane, world.engine) as member:
        yield member


@pytest.fixture
async def instance(managed: ManagedInstance, member: MemberCluster) -> AsyncIterator[ManagedInstance]:
    """A running instance that the member has joined."""
    async with Client(managed.world.connection) as client, leading(managed.world):
        managed.client = client
        if not managed.uid:
            await managed.create()
            await managed.until(is_now(InstanceCondition.REACHABLE, "True"))
            await member.register(client)
            await member.join(client, managed.name)
        await member.until_joined(client)
        yield managed


async def told(instance: ManagedInstance, who: str, kind: AccessBindingCondition) -> tuple[str, str]:
    """Status and reason of a condition, if it is about the present generation."""
    found = await instance.client.typed(AccessBinding).get(BINDING, name_of(who))
    condition = find_condition(found.status.conditions, kind)
    if condition is None or condition.observed_generation != found.metadata.generation:
        return "", ""
    return condition.status, condition.reason


async def applied(instance: ManagedInstance, who: str, reason: str = "Applied") -> None:
    async def says() -> bool:
        return all([(await told(instance, who, kind))[1] == reason for kind in AccessBindingCondition])

    await eventually(says, f"the binding of {who} being {reason}")


def person(client: Client, who: str, groups: Sequence[str] = ()) -> Client:
    return client.impersonating(
        Impersonation(user=f"kairship:user:{who}", groups=[f"kairship:group:{group}" for group in groups])
    )


async def status_in_member(instance: Client, member: str, path: str, *, method: str = "GET", body: bytes = b"") -> int:
    """The status of a request through Karmada's proxy."""
    reply = await instance.request(
        method,
        f"/apis/cluster.karmada.io/v1alpha1/clusters/{member}/proxy{path}",
        body=body or None,
        headers={"Content-Type": "application/json"} if body else {},
    )
    return reply.status


async def is_refused(call: Callable[[], Awaitable[object]]) -> bool:
    """Whether the server refuses the call. It hears of RBAC objects a moment after they are stored."""
    try:
        await call()
    except Forbidden:
        return True
    return False


async def granted(client: Client, namespace: str) -> set[tuple[str, str, str, tuple[str, ...]]]:
    """All that a subject may do in a namespace, as the API server itself says."""

    async def reviewed() -> Object | NotYet:
        found = await client.create(RULES, {"spec": {"namespace": namespace}})
        # The server hears of roles and of bindings separately: for a moment it can know a binding without its role.
        problem = found["status"].get("evaluationError")
        return NotYet(problem) if problem else found

    review = await eventually(reviewed, "a review without an error")
    return {
        (group, resource, verb, tuple(rule.get("resourceNames") or ()))
        for rule in review["status"]["resourceRules"]
        for group in rule.get("apiGroups") or [""]
        for resource in rule.get("resources") or ()
        for verb in rule["verbs"]
    }


@pytest.mark.parametrize("role", [Role.VIEWER, Role.EDITOR, Role.ADMIN])
async def test_the_server_itself_grants_nothing_beyond_the_table(
    instance: ManagedInstance, member: MemberCluster, role: Role
) -> None:
    await bind(instance, ANN, role)
    await bind(instance, BEN, role, namespace="default")
    await applied(instance, ANN)
    await applied(instance, BEN)
    held = permissions_of(role)
    async with await instance.inside() as inside:
        for who, namespace in itertools.product((ANN, BEN), ("default", "karmada-cluster", "kube-system")):
            for group, resource, verb, names in await granted(person(inside, who), namespace):
                assert "*" not in (group, resource, verb)
                plural, _, part = resource.partition("/")
                if resource == "clusters/proxy":
                    assert names == (member.name,)
                    continue
                if is_marker(verb):
                    # It comes with the right to write, and means nothing by itself.
                    assert role is not Role.VIEWER
                    assert who != BEN or namespace == "default"
                    continue
                need = permission_for(Attributes(verb=verb, group=group, resource=plural, subresource=part))
                assert need is AnyRight.ON_INSTANCE or need in held, (who, namespace, resource, verb)
                assert namespace == "default" or plural != "secrets"
                if namespace != "default" and role is not Role.ADMIN:
                    assert verb in {"get", "list", "watch", "create"} or plural not in {"pods", "namespaces"}
                    assert who != BEN or need is AnyRight.ON_INSTANCE, (namespace, resource, verb)


async def test_people_reach_exactly_that_in_the_instance_and_in_the_member(
    instance: ManagedInstance, member: MemberCluster
) -> None:
    await bind(instance, ANN, Role.EDITOR)
    await bind(instance, BEN, Role.VIEWER, namespace="default")
    await bind(instance, "%crew", Role.VIEWER)
    for who in (ANN, BEN, "%crew"):
        await applied(instance, who)
    configmap = msgspec.json.encode({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "x-"}})
    async with await instance.inside() as inside:
        ann, ben, cleo = person(inside, ANN, ["crew"]), person(inside, BEN), person(inside, CLEO)
        for allowed in (
            partial(ann.list, kinds.SECRETS, namespace="default"),
            partial(ann.list, kinds.CLUSTERS),
            partial(ben.list, kinds.CONFIGMAPS, namespace="default"),
        ):
            await eventually(allowed, f"{allowed.args} being allowed")
        for refused in (
            partial(ann.list, kinds.SECRETS, namespace="karmada-cluster"),
            partial(ann.list, kinds.SECRETS),
            partial(ann.list, kinds.WORKS),
            partial(ben.list, kinds.SECRETS, namespace="default"),
            partial(ben.list, kinds.CONFIGMAPS, namespace="kube-system"),
            partial(ben.list, kinds.CLUSTERS),
            partial(cleo.list, kinds.CONFIGMAPS, namespace="default"),
        ):
            await eventually(partial(is_refused, refused), f"{refused.args} being refused")
        # Only now, when the rights of the test before are gone: the deletion would be carried out.
        with pytest.raises(Forbidden):
            await ann.delete(kinds.NAMESPACES, "karmada-cluster")
        default, system = "/api/v1/namespaces/default", "/api/v1/namespaces/kube-system"
        expected = {
            (ann, "GET", f"{default}/pods"): 200,
            (ann, "GET", f"{default}/secrets"): 200,
            (ann, "POST", f"{default}/configmaps"): 201,
            (ann, "GET", f"{system}/secrets"): 403,
            (ann, "POST", f"{system}/configmaps"): 403,
            (ann, "GET", "/api/v1/namespaces/karmada-cluster/secrets"): 403,
            (ann, "GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles"): 403,
            (ben, "GET", f"{default}/pods"): 200,
            (ben, "GET", f"{system}/pods"): 403,
            (ben, "GET", f"{default}/secrets"): 403,
            (ben, "POST", f"{default}/configmaps"): 403,
            (cleo, "GET", f"{default}/pods"): 403,
        }

        async def as_expected() -> bool | NotYet:
            # Karmada removes the rights of the test before in its own time: no condition of a binding speaks of that.
            found = {
                (caller, method, path): await status_in_member(
                    caller, member.name, path, method=method, body=configmap if method == "POST" else b""
                )
                for caller, method, path in expected
            }
            wrong = [(key[1:], found[key], expected[key]) for key in expected if found[key] != expected[key]]
            return NotYet(wrong) if wrong else True

        await eventually(as_expected, "exactly these rights in the member")


async def test_drift_is_undone_in_the_instance_and_in_the_member(
    instance: ManagedInstance, member: MemberCluster
) -> None:
    attacker = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "kairship:user:mallory"}
    async with await instance.inside() as inside, member.client() as client:
        # What earlier tests withdrew would be missed below.
        await eventually(lambda: at_rest(inside), "Karmada having applied and removed everything")
        for cluster in (inside, client):
            bindings = await names(cluster, kinds.CLUSTER_ROLE_BINDINGS)
            roles = await names(cluster, kinds.CLUSTER_ROLES)
            wide = next(name for name in sorted(bindings) if name.endswith("-wide"))
            await cluster.delete(kinds.CLUSTER_ROLES, wide)
            extra = {"subjects": [attacker]}
            await cluster.patch(kinds.CLUSTER_ROLE_BINDINGS, wide, extra)

            async def healed(cluster: Client = cluster, wide: str = wide, roles: set[str] = roles) -> bool:
                found = await cluster.get(kinds.CLUSTER_ROLE_BINDINGS, wide)
                back = roles <= await names(cluster, kinds.CLUSTER_ROLES)
                return back and attacker not in found["subjects"]

            await eventually(healed, "the drift being undone")
        deep = next(item for item in await ours(inside, kinds.ROLE_BINDINGS))
        await inside.delete(kinds.ROLE_BINDINGS, deep["metadata"]["name"], namespace=deep["metadata"]["namespace"])
        work = next(item for item in await ours(inside, kinds.WORKS))
        place = {"namespace": work["metadata"]["namespace"]}
        await inside.delete(kinds.WORKS, work["metadata"]["name"], **place)

        async def back() -> bool:
            renewed = await inside.get(kinds.WORKS, work["metadata"]["name"], **place)
            binding = await inside.get(
                kinds.ROLE_BINDINGS, deep["metadata"]["name"], namespace=deep["metadata"]["namespace"]
            )
            lost = {work["metadata"]["uid"], deep["metadata"]["uid"]}
            return lost.isdisjoint({renewed["metadata"]["uid"], binding["metadata"]["uid"]})

        await eventually(back, "what was deleted")
        # The next leader would requeue a Work that Karmada has not applied for a while.
        await eventually(lambda: at_rest(inside), "Karmada having applied what came back")


async def at_rest(inside: Client) -> bool:
    """Whether Karmada has applied all our Works, and has nothing of ours left to remove from the member."""
    return all(
        not work["metadata"].get("deletionTimestamp")
        and any(
            each["type"] == "Applied" and each["status"] == "True"
            for each in work.get("status", {}).get("conditions") or ()
        )
        for work in await ours(inside, kinds.WORKS)
    )


async def ours(cluster: Client, kind: Resource) -> list[Object]:
    return (await cluster.list(kind, label_selector=OURS)).items


async def names(cluster: Client, kind: Resource) -> set[str]:
    return {item["metadata"]["name"] for item in await ours(cluster, kind)}


async def test_a_new_leader_changes_nothing(world: World, managed: ManagedInstance, member: MemberCluster) -> None:
    async def revisions() -> dict[str, str]:
        async with await managed.inside() as inside:
            found: dict[str, str] = {}
            for kind in (kinds.CLUSTER_ROLES, kinds.CLUSTER_ROLE_BINDINGS, kinds.ROLE_BINDINGS, kinds.WORKS):
                # Karmada writes the status of Works, which does not count here.
                version = "generation" if kind is kinds.WORKS else "resourceVersion"
                found |= {item["metadata"]["uid"]: item["metadata"][version] for item in await ours(inside, kind)}
            return found

    async with Client(world.connection) as client:
        managed.client = client
        before = await revisions()
        assert before
        async with leading(world):
            # When the conditions of a new binding are written, everything else has been reconciled.
            await bind(managed, "newcomer", Role.VIEWER, uid="another")
            await eventually(lambda: _says(managed, "newcomer", "InstanceMissing"), "the newcomer being told")
            await member.until_joined(client)
        assert await revisions() == before


async def _says(instance: ManagedInstance, who: str, reason: str) -> bool:
    return (await told(instance, who, AccessBindingCondition.APPLIED))[1] == reason


async def test_a_right_on_the_platform_holds_in_the_instance_and_in_the_member(
    instance: ManagedInstance, member: MemberCluster
) -> None:
    await bind(instance, "%staff", Role.PLATFORM_ADMIN, everywhere=True)
    await applied(instance, "%staff")
    async with await instance.inside() as inside:
        somebody = person(inside, ANN, ["staff"])
        await eventually(partial(somebody.list, kinds.SECRETS), "the right in the instance")

        async def holds_in_member() -> bool:
            path = "/api/v1/namespaces/kube-system/secrets"
            return await status_in_member(somebody, member.name, path) == 200

        await eventually(holds_in_member, "the right in the member")
        await eventually(partial(somebody.list, kinds.WORKS), "the right to Works")
        # Not even administrators write in a member what configures it as a whole.
        path = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
        assert await status_in_member(somebody, member.name, path) == 200
        assert await status_in_member(somebody, member.name, path, method="POST", body=b"{}") == 403
        await bind(instance, "%staff", Role.PLATFORM_ADMIN, everywhere=True, revoked=True)
        await eventually(lambda: _says(instance, "%staff", "Withdrawn"), "the withdrawal")
        await eventually(partial(is_refused, partial(somebody.list, kinds.SECRETS)), "the end of the right")


async def test_namespaces_and_kinds_that_come_later(instance: ManagedInstance, member: MemberCluster) -> None:
    async with await instance.inside() as inside:
        await inside.create(kinds.NAMESPACES, {"metadata": {"name": "shop"}})
        ann = person(inside, ANN)

        async def works_there() -> bool:
            try:
                await ann.list(kinds.SECRETS, namespace="shop")
            except Forbidden:
                return False
            return await status_in_member(ann, member.name, "/api/v1/namespaces/shop/secrets") == 200

        await eventually(works_there, "rights in a new namespace")


async def test_a_member_that_was_away_gets_it_when_it_returns(instance: ManagedInstance, member: MemberCluster) -> None:
    await member.supervisor.stop(member.group)
    await bind(instance, CLEO, Role.EDITOR, namespace="default")

    async def pending() -> bool:
        applied, _ = await told(instance, CLEO, AccessBindingCondition.APPLIED)
        _, reason = await told(instance, CLEO, AccessBindingCondition.MEMBERS_APPLIED)
        return (applied, reason) == ("True", "SomePending")

    await eventually(pending, "the instance having it, and the member being waited for")
    # The right is withdrawn while the member is away: it must not come back with the member.
    await bind(instance, ANN, Role.EDITOR, revoked=True)
    await eventually(lambda: _says(instance, ANN, "Withdrawn"), "the withdrawal")
    await member.supervisor.start(member.group)
    await member.supervisor.wait_ready(member.group, timeout=PATIENCE)

    async def arrived() -> bool:
        async with member.client() as client:
            found = await client.list(
                kinds.ROLE_BINDINGS, namespace="default", label_selector="kairship.io/access=true"
            )
            subjects = {each["name"] for item in found.items for each in item["subjects"]}
        return "kairship:user:cleo" in subjects and "kairship:user:ann" not in subjects

    await eventually(arrived, "the member having it")


async def test_an_instance_restored_to_an_older_revision_has_the_rights_of_today(
    instance: ManagedInstance, member: MemberCluster
) -> None:
    await instance.change(backups=[{"name": "before"}])
    await instance.until(gives(InstanceCondition.BACKED_UP, InstanceReason.BACKED_UP))
    await bind(instance, BEN, Role.VIEWER, namespace="default", revoked=True)
    await bind(instance, "dora", Role.VIEWER, namespace="default")
    await eventually(lambda: _says(instance, BEN, "Withdrawn"), "the withdrawal")
    await applied(instance, "dora")
    # The right is given after the backup and withdrawn during the restore: Karmada will not know of it any more.
    await bind(instance, "eve", Role.EDITOR)
    await applied(instance, "eve")
    await instance.change(restore={"request": "one", "backup": "before"})
    await instance.until(gives(InstanceCondition.RESTORED, InstanceReason.RESTORING))
    await bind(instance, "eve", Role.EDITOR, revoked=True)
    await instance.until(gives(InstanceCondition.RESTORED, InstanceReason.RESTORED))
    async with await instance.inside() as inside:

        async def as_of_today() -> bool:
            path = "/api/v1/namespaces/default/pods"
            found = [await status_in_member(person(inside, who), member.name, path) for who in (BEN, "dora", "eve")]
            refused = [
                await is_refused(partial(person(inside, who).list, kinds.CONFIGMAPS, namespace="default"))
                for who in (BEN, "dora")
            ]
            return found == [403, 200, 403] and refused == [True, False]

        await eventually(as_of_today, "the rights of today")
    await bind(instance, "dora", Role.VIEWER, namespace="default", revoked=True)


async def test_what_is_withdrawn_is_gone_everywhere(instance: ManagedInstance, member: MemberCluster) -> None:
    for who in (BEN, "%crew", CLEO):
        await bind(instance, who, Role.VIEWER, namespace="default" if who in {BEN, CLEO} else "", revoked=True)
        await eventually(partial(_says, instance, who, "Withdrawn"), "the withdrawal")
    async with await instance.inside() as inside, member.client() as client:

        async def nothing() -> bool:
            rbac = (kinds.CLUSTER_ROLES, kinds.CLUSTER_ROLE_BINDINGS, kinds.ROLE_BINDINGS)
            left = [await names(cluster, kind) for cluster, kind in itertools.product((inside, client), rbac)]
            return not any(left) and not await names(inside, kinds.WORKS)

        await eventually(nothing, "nothing being left")
        reading = partial(person(inside, BEN).list, kinds.CONFIGMAPS, namespace="default")
        await eventually(partial(is_refused, reading), "the end of the right")
