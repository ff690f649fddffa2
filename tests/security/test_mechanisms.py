"""Whatever Karmada offers, nobody gains by it what their own rights would not give: each mechanism, for each role.

Each person tries every mechanism in a real instance with a real member. Which attempts the instance accepts is written
down here; and whatever was accepted, nothing that the person could not change directly has changed in the member, as a
snapshot of all its objects shows. All tests of the module use one instance and one member.
"""

import copy
import random
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
import pytest
from support.delivered_bindings import bind
from support.managed import ManagedInstance, World, is_now, leading
from support.member_clusters import MemberCluster, member_cluster
from support.not_yet import NotYet
from support.soak import SOAK
from support.waiting import eventually

from kairship.access import Role
from kairship.access.catalogue import markers
from kairship.instances.admission import people as admission_people
from kairship.kube import ApiError, Client, Forbidden, Impersonation, Invalid, NotFound, Object, kinds
from kairship.resources import InstanceCondition

TENANT, OTHER = "tenant", "other"
POLICY = "policy.karmada.io/v1alpha1"
RBAC = "rbac.authorization.k8s.io"
Snapshot = Mapping[tuple[str, str, str], Any]

# By person: the role, and the namespace that the role is on; an empty one means the whole instance.
PEOPLE = {
    "namespace-viewer": (Role.VIEWER, TENANT),
    "namespace-editor": (Role.EDITOR, TENANT),
    "namespace-admin": (Role.ADMIN, TENANT),
    "instance-viewer": (Role.VIEWER, ""),
    "instance-editor": (Role.EDITOR, ""),
    "instance-admin": (Role.ADMIN, ""),
}


def thing(api_version: str, kind: str, name: str, namespace: str = "", **content: Any) -> Object:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    metadata |= content.pop("metadata", {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


def selector(api_version: str, kind: str, **other: str) -> dict[str, str]:
    return {"apiVersion": api_version, "kind": kind, **other}


CONFIG_MAP = selector("v1", "ConfigMap", name="bait")


def override(name: str, *, selectors: Sequence[Any] = (CONFIG_MAP,), **overriders: Any) -> Object:
    spec: dict[str, Any] = {"overrideRules": [{"overriders": overriders}]}
    return thing(POLICY, "OverridePolicy", name, TENANT, spec=spec | {"resourceSelectors": list(selectors)})


def cluster_override(name: str, *, selectors: Sequence[Any], **overriders: Any) -> Object:
    spec = {"resourceSelectors": list(selectors), "overrideRules": [{"overriders": overriders}]}
    return thing(POLICY, "ClusterOverridePolicy", name, spec=spec)


def propagation(name: str, *selectors: Any, **spec: Any) -> Object:
    return thing(POLICY, "PropagationPolicy", name, TENANT, spec={"resourceSelectors": list(selectors), **spec})


def cluster_propagation(name: str, *selectors: Any) -> Object:
    return thing(POLICY, "ClusterPropagationPolicy", name, spec={"resourceSelectors": list(selectors)})


def replace(path: str, value: Any) -> dict[str, Any]:
    return {"path": path, "operator": "replace", "value": value}


def add(path: str, value: Any) -> dict[str, Any]:
    return {"path": path, "operator": "add", "value": value}


TO_CLUSTER_ROLE_BINDING = [
    replace("/apiVersion", f"{RBAC}/v1"),
    replace("/kind", "ClusterRoleBinding"),
    add("/roleRef", {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"}),
    add("/subjects", [{"apiGroup": RBAC, "kind": "User", "name": "kairship:user:namespace-editor"}]),
]

IMAGE_IN_NAMESPACE = {
    "component": "Registry",
    "operator": "replace",
    "value": OTHER,
    "predicate": {"path": "/metadata/namespace"},
}


def definition(group: str, **spec: Any) -> Object:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    spec |= {"group": group, "names": {"plural": "things", "kind": "Thing"}, "scope": "Namespaced"}
    content = {"preserveUnknownFields": False, "versions": [version], **spec}
    return thing("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"things.{group}", spec=content)


def webhook(kind: str, name: str, client_config: Any, group: str, resource: str) -> Object:
    rule = {"apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE"], "resources": [resource]}
    content = {
        "name": "a.example.org",
        "clientConfig": client_config,
        "rules": [rule],
        "sideEffects": "None",
        "failurePolicy": "Ignore",
        "admissionReviewVersions": ["v1"],
    }
    return thing("admissionregistration.k8s.io/v1", kind, name, webhooks=[content])


SERVICE = {"namespace": TENANT, "name": "x"}

# What is accepted from whom. An empty set: from nobody.
WRITERS_IN_NAMESPACE = frozenset(PEOPLE) - {"namespace-viewer", "instance-viewer"}
WRITERS_ON_INSTANCE = frozenset({"instance-editor", "instance-admin"})
ADMINS = frozenset({"namespace-admin", "instance-admin"})
INSTANCE_ADMIN = frozenset({"instance-admin"})
NOBODY: frozenset[str] = frozenset()

MECHANISMS: dict[str, tuple[Object, frozenset[str]]] = {
    # What is meant to work.
    "an override of content": (override("content", plaintext=[replace("/data/key", "changed")]), WRITERS_IN_NAMESPACE),
    "an override of all labels": (override("label", plaintext=[add("/metadata/labels", {})]), NOBODY),
    "an override of an own label": (
        override("own-label", labelsOverrider=[{"operator": "add", "value": {"team": "red"}}]),
        WRITERS_IN_NAMESPACE,
    ),
    "propagation with overwriting": (
        propagation("overwriting", CONFIG_MAP, conflictResolution="Overwrite", propagateDeps=True, priority=100),
        WRITERS_IN_NAMESPACE,
    ),
    "propagation over the instance": (
        cluster_propagation("everywhere", selector("v1", "ConfigMap", namespace=TENANT, name="bait")),
        WRITERS_ON_INSTANCE,
    ),
    # The identity of an object.
    "another kind": (override("kind", plaintext=TO_CLUSTER_ROLE_BINDING), NOBODY),
    "another namespace": (override("namespace", plaintext=[replace("/metadata/namespace", OTHER)]), NOBODY),
    "a system namespace": (override("system", plaintext=[replace("/metadata/namespace", "kube-system")]), NOBODY),
    "another name": (override("name", plaintext=[replace("/metadata/name", "victim")]), NOBODY),
    "the whole object": (override("whole", plaintext=[replace("", {"kind": "Namespace"})]), NOBODY),
    "a pointer without its beginning": (override("prefix", plaintext=[replace("x/kind", "Namespace")]), NOBODY),
    "a pointer with an empty token": (override("empty", plaintext=[replace("//kind", "Namespace")]), NOBODY),
    "the old form of overriders": (
        thing(
            POLICY,
            "OverridePolicy",
            "old-form",
            TENANT,
            spec={"resourceSelectors": [CONFIG_MAP], "overriders": {"plaintext": TO_CLUSTER_ROLE_BINDING}},
        ),
        NOBODY,
    ),
    "finalizers": (override("finalizers", plaintext=[add("/metadata/finalizers", ["kairship.io/x"])]), NOBODY),
    "owners": (override("owners", plaintext=[add("/metadata/ownerReferences", [])]), NOBODY),
    "a field in the name": (
        override(
            "field", fieldOverrider=[{"fieldPath": "/metadata/name", "yaml": [{"subPath": "/a", "operator": "add"}]}]
        ),
        NOBODY,
    ),
    "an image in the namespace": (override("image", imageOverrider=[IMAGE_IN_NAMESPACE]), NOBODY),
    "labels of Karmada": (
        override("labels", labelsOverrider=[{"operator": "add", "value": {"karmada.io/managed": "false"}}]),
        NOBODY,
    ),
    "annotations of Karmada": (
        override("annotations", annotationsOverrider=[{"operator": "add", "value": {"work.karmada.io/name": "x"}}]),
        NOBODY,
    ),
    "an override of every kind": (override("all", selectors=(), plaintext=[replace("/data/key", "x")]), NOBODY),
    # Kinds that the person may not write.
    "propagation of roles": (
        propagation("roles", selector(f"{RBAC}/v1", "Role"), selector(f"{RBAC}/v1", "RoleBinding")),
        ADMINS,
    ),
    # Kubernetes asks a person who binds a role for all that the role grants, and nobody asks Karmada.
    "overrides of roles": (
        override("roles", selectors=[selector(f"{RBAC}/v1", "RoleBinding")], plaintext=[replace("/subjects", [])]),
        NOBODY,
    ),
    "overrides of quotas": (
        override("quotas", selectors=[selector("v1", "ResourceQuota")], plaintext=[replace("/spec/hard", {})]),
        INSTANCE_ADMIN,
    ),
    "a federated quota": (
        thing(POLICY, "FederatedResourceQuota", "quota", TENANT, spec={"overall": {"cpu": "1"}}),
        INSTANCE_ADMIN,
    ),
    "more kinds than can be checked": (
        propagation("many", *[selector("v1", "ConfigMap", name=f"c{n}") for n in range(21)]),
        NOBODY,
    ),
    "propagation of cluster roles": (
        cluster_propagation("cluster-roles", selector(f"{RBAC}/v1", "ClusterRoleBinding")),
        NOBODY,
    ),
    "propagation of webhooks": (
        cluster_propagation("webhooks", selector("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")),
        NOBODY,
    ),
    "propagation of roles everywhere": (
        cluster_propagation("all-roles", selector(f"{RBAC}/v1", "RoleBinding")),
        INSTANCE_ADMIN,
    ),
    "another kind, over the instance": (
        cluster_override("kind", selectors=[CONFIG_MAP | {"namespace": TENANT}], plaintext=TO_CLUSTER_ROLE_BINDING),
        NOBODY,
    ),
    "overrides of every kind, over the instance": (
        cluster_override("all", selectors=[], plaintext=[replace("/data/key", "x")]),
        NOBODY,
    ),
    # Other things that make Karmada act.
    "claiming for a policy of others": (
        thing(
            "v1",
            "ConfigMap",
            "claimed",
            TENANT,
            metadata={
                "labels": {"propagationpolicy.karmada.io/permanent-id": "0"},
                "annotations": {"propagationpolicy.karmada.io/namespace": OTHER},
            },
        ),
        NOBODY,
    ),
    "scaling what one may not write": (
        thing(
            "autoscaling.karmada.io/v1alpha1",
            "FederatedHPA",
            "scaling",
            TENANT,
            spec={
                "scaleTargetRef": {"apiVersion": "example.org/v1", "kind": "Widget", "name": "x"},
                "minReplicas": 1,
                "maxReplicas": 2,
            },
        ),
        NOBODY,
    ),
    "scaling by the clock what one may not write": (
        thing(
            "autoscaling.karmada.io/v1alpha1",
            "CronFederatedHPA",
            "clock",
            TENANT,
            spec={
                "scaleTargetRef": {"apiVersion": "example.org/v1", "kind": "Widget", "name": "x"},
                "rules": [{"name": "night", "schedule": "0 0 * * *", "targetReplicas": 0}],
            },
        ),
        NOBODY,
    ),
    "rebalancing": (
        thing(
            "apps.karmada.io/v1alpha1",
            "WorkloadRebalancer",
            "rebalancing",
            spec={"workloads": [selector("apps/v1", "Deployment", namespace=OTHER, name="victim")]},
        ),
        WRITERS_ON_INSTANCE,
    ),
    "rebalancing of what one may not write": (
        thing(
            "apps.karmada.io/v1alpha1",
            "WorkloadRebalancer",
            "rebalancing-roles",
            spec={"workloads": [selector(f"{RBAC}/v1", "ClusterRole", name="victim")]},
        ),
        NOBODY,
    ),
    "state that becomes a label of Karmada": (
        propagation(
            "state",
            CONFIG_MAP,
            failover={
                "application": {
                    "decisionConditions": {"tolerationSeconds": 1},
                    "purgeMode": "Directly",
                    "statePreservation": {
                        "rules": [{"aliasLabelName": "karmada.io/managed", "jsonPath": "{.replicas}"}]
                    },
                }
            },
        ),
        NOBODY,
    ),
    "a script for Karmada": (
        thing(
            "config.karmada.io/v1alpha1",
            "ResourceInterpreterCustomization",
            "script",
            spec={
                "target": selector("v1", "ConfigMap"),
                "customizations": {"retention": {"luaScript": "function Retain(d, o) return d end"}},
            },
        ),
        NOBODY,
    ),
    "a Work": (
        thing("work.karmada.io/v1alpha1", "Work", "work", "karmada-es-{member}", spec={"workload": {"manifests": []}}),
        NOBODY,
    ),
    # What the instance consists of.
    "a role with the name of Karmada's": (
        thing(f"{RBAC}/v1", "ClusterRole", "karmada-controller-manager:karmada-x", rules=[]),
        NOBODY,
    ),
    "a definition of Karmada's": (definition("policy.karmada.io"), NOBODY),
    "a definition with a conversion webhook": (
        definition(
            "example.org",
            conversion={
                "strategy": "Webhook",
                "webhook": {
                    "clientConfig": {"url": "https://127.0.0.1:1/convert"},
                    "conversionReviewVersions": ["v1"],
                },
            },
        ),
        NOBODY,
    ),
    "a webhook at an address": (
        webhook("ValidatingWebhookConfiguration", "address", {"url": "https://127.0.0.1:1/"}, "example.org", "*"),
        NOBODY,
    ),
    "a webhook that sees Secrets": (
        webhook("MutatingWebhookConfiguration", "secrets", {"service": SERVICE}, "", "secrets"),
        NOBODY,
    ),
    "a webhook for its own kinds": (
        webhook("ValidatingWebhookConfiguration", "own", {"service": SERVICE}, "example.org", "things"),
        INSTANCE_ADMIN,
    ),
    "an API in the place of Karmada's": (
        thing(
            "apiregistration.k8s.io/v1",
            "APIService",
            "v1alpha9.policy.karmada.io",
            spec={
                "group": "policy.karmada.io",
                "version": "v1alpha9",
                "service": {"namespace": TENANT, "name": "x"},
                "groupPriorityMinimum": 1,
                "versionPriority": 1,
                "insecureSkipTLSVerify": True,
            },
        ),
        NOBODY,
    ),
    "a namespace for a cluster of Karmada": (thing("v1", "Namespace", "karmada-es-nowhere"), NOBODY),
}


@pytest.fixture(scope="module")
def member(world: World) -> Iterator[MemberCluster]:
    with member_cluster(world.plane, world.engine) as member:
        yield member


@pytest.fixture
async def instance(managed: ManagedInstance, member: MemberCluster) -> AsyncIterator[ManagedInstance]:
    """A running instance that the member has joined, with two namespaces and a person for each role."""
    async with Client(managed.world.connection) as client, leading(managed.world):
        managed.client = client
        if not managed.uid:
            await managed.create()
            await managed.until(is_now(InstanceCondition.REACHABLE, "True"))
            await member.register(client)
            await member.join(client, managed.name)
            for who, (role, namespace) in PEOPLE.items():
                await bind(managed, who, role, namespace=namespace)
            await member.until_joined(client)
            async with await managed.inside() as inside:
                await _furnish(inside)
        await managed.until(is_now(InstanceCondition.POLICIES_ENFORCED, "True"))
        async with await managed.inside() as inside, member.client() as outside:
            for server in (inside, outside):
                await eventually(partial(_all_granted, server), "the rights of all people")
            await settled(inside, outside)
        yield managed


async def _all_granted(server: Client) -> NotYet | bool:
    """Whether the RBAC of all people has arrived in the instance or in the member."""
    for who, (role, namespace) in PEOPLE.items():
        for where in [namespace] if namespace else ["default", TENANT, OTHER]:
            verb = "list" if role is Role.VIEWER else "create"
            attributes = {"namespace": where, "resource": "configmaps", "verb": verb}
            review = {"spec": {"user": f"kairship:user:{who}", "resourceAttributes": attributes}}
            if not (await server.create(kinds.SUBJECT_ACCESS_REVIEWS, review))["status"]["allowed"]:
                return NotYet((who, where))
    return True


async def _furnish(inside: Client) -> None:
    """Two namespaces with something in them that Karmada propagates."""
    for namespace in (TENANT, OTHER):
        await inside.apply(kinds.NAMESPACES, {"metadata": {"name": namespace}}, field_manager="tests")
        for name in ("bait", "victim"):
            config_map = {"metadata": {"name": name, "namespace": namespace}, "data": {"key": "original"}}
            await inside.apply(kinds.CONFIGMAPS, config_map, field_manager="tests")
        selectors = [selector("v1", "ConfigMap", name=name) for name in ("bait", "victim")]
        metadata = {"name": "standing", "namespace": namespace}
        manifest = {"metadata": metadata, "spec": {"resourceSelectors": selectors}}
        await inside.apply(kinds.PROPAGATION_POLICIES, manifest, field_manager="tests")


def person(client: Client, who: str) -> Client:
    return client.impersonating(Impersonation(user=f"kairship:user:{who}", groups=[]))


async def attempt(client: Client, manifest: Object) -> ApiError | None:
    try:
        await client.apply_object(manifest, field_manager="kubectl")
    except (Forbidden, Invalid) as refusal:
        return refusal
    return None


async def settled(inside: Client, member: Client) -> None:
    """Waits until Karmada has carried out what there is to do: every binding has its Works, and they are applied."""

    async def done() -> NotYet | bool:
        for namespace in (TENANT, OTHER):
            for binding in (await inside.list(kinds.RESOURCE_BINDINGS, namespace=namespace)).items:
                status = binding.get("status") or {}
                if status.get("schedulerObservedGeneration") != binding["metadata"]["generation"]:
                    return NotYet(binding["metadata"]["name"])
                conditions = {each["type"]: each["status"] for each in status.get("conditions") or []}
                if conditions.get("FullyApplied") != "True":
                    return NotYet((binding["metadata"]["name"], conditions))
            for name in ("bait", "victim"):
                await member.get(kinds.CONFIGMAPS, name, namespace=namespace)
        return True

    await eventually(done, "Karmada having nothing left to do")


async def snapshot(client: Client) -> Snapshot:
    """Every object of a server, without what changes by itself."""
    found: dict[tuple[str, str, str], Any] = {}
    catalogue = await client.discovery.catalogue()
    for served in catalogue.resources:
        resource = served.resource
        if "list" not in served.verbs or resource.kind in {"Event", "Lease", "ComponentStatus"}:
            continue
        for item in (await client.list(resource)).items:
            metadata = copy.deepcopy(item["metadata"])
            for volatile in ("resourceVersion", "managedFields", "generation"):
                metadata.pop(volatile, None)
            content = {key: value for key, value in item.items() if key not in {"metadata", "status"}}
            key = (f"{resource.kind}.{resource.group}", metadata.get("namespace", ""), metadata["name"])
            found[key] = msgspec.json.encode([metadata, content], order="sorted")
    return found


def changed(before: Snapshot, after: Snapshot) -> set[tuple[str, str, str]]:
    return {key for key in {*before, *after} if before.get(key) != after.get(key)}


def test_policies_ask_for_the_verbs_that_roles_have() -> None:
    assert (admission_people.PROPAGATE, admission_people.OVERRIDE) == (markers.PROPAGATE, markers.OVERRIDE)


@pytest.mark.parametrize("who", PEOPLE)
async def test_nobody_gains_anything(instance: ManagedInstance, member: MemberCluster, who: str) -> None:
    async with await instance.inside() as inside, member.client() as outside:
        before = await snapshot(outside)
        accepted, refusals = set(), {}
        for name, (manifest, _) in MECHANISMS.items():
            wanted = msgspec.json.decode(msgspec.json.encode(manifest).replace(b"{member}", member.name.encode()))
            refusal = await attempt(person(inside, who), wanted)
            if refusal is None:
                accepted.add(name)
            else:
                refusals[name] = str(refusal)
        await settled(inside, outside)
        after = await snapshot(outside)
        await clear_away(inside, [MECHANISMS[name][0] for name in accepted])
    expected = {name for name, (_, by) in MECHANISMS.items() if who in by}
    assert accepted == expected, {name: refusals.get(name) for name in accepted ^ expected}
    strange = {
        key
        for key in changed(before, after)
        if key[1] != TENANT and not (who in WRITERS_ON_INSTANCE and key[1] == OTHER)
    }
    assert not strange


@pytest.mark.parametrize("seed", range(20) if SOAK else [14])
async def test_whatever_an_editor_writes_stays_in_the_namespace(
    instance: ManagedInstance, member: MemberCluster, seed: int
) -> None:
    """Some of the random policies and overrides are accepted; all that they change is in the namespace."""
    bundle = RandomBundle(random.Random(seed))  # noqa: S311 - a test that can be repeated
    async with await instance.inside() as inside, member.client() as outside:
        before = await snapshot(outside)
        editor = person(inside, "namespace-editor")
        written = [manifest for manifest in bundle.manifests() if await attempt(editor, manifest) is None]
        assert {manifest["kind"] for manifest in written} >= {"ConfigMap", "PropagationPolicy", "OverridePolicy"}
        await scheduled(inside)
        # Karmada takes bindings in turn: when it has placed one that came last, it has tried all others. That one is
        # in another namespace, because overrides that cannot be applied hold up every object that they select.
        last = f"last-{seed}"
        await inside.apply_object(thing("v1", "ConfigMap", last, OTHER), field_manager="tests")
        policy = propagation(last, selector("v1", "ConfigMap", name=last), priority=1000)
        policy["metadata"]["namespace"] = OTHER
        await inside.apply_object(policy, field_manager="tests")
        await eventually(partial(outside.get, kinds.CONFIGMAPS, last, namespace=OTHER), "the last ConfigMap")
        after = await snapshot(outside)
        await clear_away(inside, written)
    assert {key for key in changed(before, after) if key[1] != TENANT} == {("ConfigMap.", OTHER, last)}


class RandomBundle:
    """Objects of one namespace, and policies that try to make more of them."""

    KINDS = (("v1", "ConfigMap"), ("v1", "Secret"), ("v1", "Service"), ("v1", "ResourceQuota"), (f"{RBAC}/v1", "Role"))
    TOKENS = (
        "spec",
        "data",
        "metadata",
        "labels",
        "namespace",
        "name",
        "kind",
        "apiVersion",
        "a",
        "",
        "~0",
        "karmada.io~1x",
    )
    VALUES: tuple[Any, ...] = (OTHER, "kube-system", "ClusterRoleBinding", "victim", {"namespace": OTHER}, [], 1)

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def manifests(self) -> Iterator[Object]:
        for number in range(8):
            yield thing("v1", "ConfigMap", f"random-{number}", TENANT, data={"a": "1"})
        for number in range(10):
            chosen = self._chance.choices(self.KINDS, weights=(5, 1, 1, 1, 1), k=self._chance.randint(1, 2))
            selectors = [selector(*kind, name=f"random-{self._chance.randrange(8)}") for kind in chosen]
            yield propagation(f"random-{number}", *selectors, conflictResolution="Overwrite", propagateDeps=True)
        for number in range(60):
            kind = self._chance.choices(self.KINDS, weights=(8, 1, 1, 1, 1))[0]
            rule = {self._chance.choice(("labelsOverrider", "annotationsOverrider")): [self._labels()]}
            rule |= {"plaintext": [self._patch() for _ in range(self._chance.randint(0, 2))]}
            yield override(f"random-{number}", selectors=[selector(*kind)], **rule)

    def _patch(self) -> dict[str, Any]:
        length = self._chance.randint(1, 3)
        prefix = self._chance.choices(("/", "", "x/"), weights=(8, 1, 1))[0]
        path = prefix + "/".join(self._chance.choices(self.TOKENS, k=length))
        return {"path": path, "operator": "add", "value": self._chance.choice(self.VALUES)}

    def _labels(self) -> dict[str, Any]:
        key = self._chance.choice(("a", "b/c", "karmada.io/managed", "work.karmada.io/name"))
        return {"operator": "add", "value": {key: self._chance.choice(("x", OTHER))}}


async def scheduled(inside: Client) -> None:
    async def all_scheduled() -> NotYet | bool:
        for binding in (await inside.list(kinds.RESOURCE_BINDINGS, namespace=TENANT)).items:
            seen = (binding.get("status") or {}).get("schedulerObservedGeneration")
            if seen != binding["metadata"]["generation"]:
                return NotYet(binding["metadata"]["name"])
        return True

    await eventually(all_scheduled, "every binding being scheduled")


async def clear_away(inside: Client, manifests: Sequence[Object]) -> None:
    for manifest in manifests:
        resource = await inside.discovery.find(manifest["apiVersion"], manifest["kind"])
        metadata = manifest["metadata"]
        try:
            await inside.delete(resource, metadata["name"], namespace=metadata.get("namespace"))
        except NotFound:
            continue
