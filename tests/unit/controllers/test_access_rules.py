"""Bindings become the RBAC that the permission catalogue says, inside an instance and its members, and nothing more."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.bindings import bind, on

from kairship.access import Attributes, Binding, Role, permission_for, permissions, permissions_of
from kairship.access.catalogue.attributes import MEMBER_PROXY_PERMISSION
from kairship.access.catalogue.markers import is_marker
from kairship.access.catalogue.system_namespaces import MEMBER_CREDENTIALS_PERMISSION, guard_of
from kairship.controllers.access.desired import DesiredRbac, ObjectKey, desired_rbac
from kairship.controllers.access.grants import collect_grants
from kairship.controllers.access.rules import CARRY, CustomKind
from kairship.controllers.access.works import matches, work, work_name
from kairship.resources import is_reserved

WIDGETS = CustomKind("example.org", "widgets", namespaced=True)
KINDS = (WIDGETS, CustomKind("example.org", "planets", namespaced=False), CustomKind("cert.karmada.io", "keys", True))
NAMESPACES = ("default", "shop", "kube-system", "karmada-system", "karmada-cluster", "karmada-es-east")
CLUSTERS = ("east", "west")

Objects = Mapping[ObjectKey, Mapping[str, Any]]


def made_of(*bindings: Binding, clusters: tuple[str, ...] = CLUSTERS) -> DesiredRbac:
    return desired_rbac(collect_grants(bindings, "uid-one"), namespaces=NAMESPACES, clusters=clusters, kinds=KINDS)


def allowed(objects: Objects, subject: str) -> Iterator[tuple[str, str, str, str, tuple[str, ...]]]:
    """What RBAC grants: namespace (empty for all), group, resource, verb and names."""
    for key, content in objects.items():
        if subject in [each["name"] for each in content.get("subjects", ())]:
            for rule in objects[ObjectKey("ClusterRole", "", content["roleRef"]["name"])]["rules"]:
                for group in rule["apiGroups"]:
                    for resource in rule["resources"]:
                        for verb in rule["verbs"]:
                            yield key.namespace, group, resource, verb, tuple(rule.get("resourceNames", ()))


def may(objects: Objects, subject: str, verb: str, resource: str, namespace: str = "") -> bool:
    group, _, plural = resource.rpartition(":")
    return any(
        (group, plural, verb) == (g, r, v) and key in {"", namespace} for key, g, r, v, _ in allowed(objects, subject)
    )


def within_the_table(objects: Objects, subject: str, held: frozenset[str], *, member: bool) -> None:
    for namespace, group, resource, verb, names in allowed(objects, subject):
        assert "*" not in (group, resource, verb)
        assert not is_reserved(namespace)
        plural, _, part = resource.partition("/")
        if resource == "clusters/proxy":
            assert set(names) == set(CLUSTERS)
            assert verb == CARRY or MEMBER_PROXY_PERMISSION in held
            continue
        request = Attributes(verb=verb, group=group, resource=plural, subresource=part, namespace=namespace)
        needed = _marked(group, resource, verb) if is_marker(verb) else permission_for(request)
        assert needed in held, (namespace, group, resource, verb, needed)
        if is_marker(verb):
            continue
        guard = guard_of(str(needed), resource, member=member)
        if not namespace and guard not in held and plural != "namespaces":
            # Nothing delicate is granted over all namespaces, because those include the ones of the system.
            assert not permissions()[str(needed)].delicate or is_global(group, plural), (group, resource, verb)


def _marked(group: str, resource: str, verb: str) -> str | None:
    """The permission that a marker verb comes with."""
    for permission in permissions().values():
        if any((rule.group, rule.resource) == (group, resource) and verb in rule.verbs for rule in permission.rules):
            return permission.name
    return {"propagate": "kairship.customresources.create", "override": "kairship.customresources.update"}[verb]


def is_global(group: str, plural: str) -> bool:
    rules = [rule for each in permissions().values() for rule in each.rules]
    known = {(rule.group, rule.resource.partition("/")[0]): rule.namespaced for rule in rules}
    return not known.get((group, plural), (group, plural) == ("example.org", "widgets"))


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("scope", [on("one"), on("one", "shop"), on()], ids=["instance", "namespace", "platform"])
@pytest.mark.parametrize("who", ["ann", "%crew"])
def test_nothing_beyond_the_table(role: Role, scope: Any, who: str) -> None:
    desired = made_of(bind(who, role, scope))
    subject = "kairship:user:ann" if who == "ann" else "kairship:group:crew"
    for objects in (desired.instance, desired.members):
        within_the_table(objects, subject, permissions_of(role), member=objects is desired.members)
        for key, content in objects.items():
            assert key.namespace in {"", "default", "shop"}
            assert {each["name"] for each in content.get("subjects", ())} <= {subject}
            assert {each["kind"] for each in content.get("subjects", ())} <= {"User" if who == "ann" else "Group"}
        if scope.namespace:
            granted = {(namespace, resource) for namespace, _, resource, _, _ in allowed(objects, subject)}
            assert {namespace for namespace, resource in granted if resource != "clusters/proxy"} == {"shop"}


@given(
    st.frozensets(st.sampled_from(sorted(permissions())), max_size=12), st.sampled_from([on("one"), on("one", "shop")])
)
def test_no_custom_role_grants_more_than_it_says(held: frozenset[str], scope: Any) -> None:
    desired = made_of(bind("ann", held, scope))
    for objects in (desired.instance, desired.members):
        within_the_table(objects, "kairship:user:ann", held, member=objects is desired.members)
    assert bool(desired.members) <= (MEMBER_PROXY_PERMISSION in held)


@pytest.mark.parametrize("role", list(Role))
def test_everything_in_the_table(role: Role) -> None:
    """A subject can do everything that its role allows in an ordinary namespace of the instance."""
    objects = made_of(bind("ann", role, on("one"))).instance
    for name in permissions_of(role):
        for rule in permissions()[name].rules:
            for verb in rule.verbs:
                resource = f"{rule.group}:{rule.resource}"
                assert may(objects, "kairship:user:ann", verb, resource, "shop"), (name, resource, verb)
    assert may(objects, "kairship:user:ann", "list", "example.org:widgets")
    assert may(objects, "kairship:user:ann", "update", "example.org:widgets", "shop") == (role >= Role.EDITOR)
    assert not may(objects, "kairship:user:ann", "get", "cert.karmada.io:keys", "shop")


def test_an_editor_cannot_reach_what_opens_the_members() -> None:
    ann = "kairship:user:ann"
    objects = made_of(bind("ann", Role.EDITOR, on("one"))).instance
    assert may(objects, ann, "get", ":secrets", "shop")
    for namespace in ("karmada-cluster", "karmada-system", "karmada-es-east", "kube-system"):
        assert not may(objects, ann, "get", ":secrets", namespace)
        assert not may(objects, ann, "create", ":pods", namespace)
        assert not may(objects, ann, "delete", ":namespaces", namespace)
    assert may(objects, ann, "delete", ":namespaces", "shop")


@pytest.mark.parametrize("namespace", ["", "karmada-cluster", "karmada-es-east", "kube-system"])
def test_an_admin_of_an_instance_does_not_reach_the_credentials_of_members(namespace: str) -> None:
    """An empty namespace stands for all of them: whoever has a right over all namespaces could pass it on."""
    ann, root = "kairship:user:ann", "kairship:user:root"
    desired = made_of(bind("ann", Role.ADMIN, on("one")), bind("root", Role.PLATFORM_ADMIN, on()))
    for objects in (desired.instance, desired.members):
        for verb in ("get", "list", "watch", "create", "update", "patch", "delete"):
            assert not may(objects, ann, verb, ":secrets", namespace)
            assert may(objects, ann, verb, ":secrets", "shop")
            assert may(objects, root, verb, ":secrets", namespace)
        assert may(objects, ann, "get", ":pods/log", namespace)
        assert may(objects, ann, "list", ":configmaps", namespace)
    assert may(desired.instance, ann, "create", ":pods", namespace)
    for verb, resource in (("create", ":pods"), ("create", ":pods/exec"), ("patch", "apps:deployments")):
        assert not may(desired.members, ann, verb, resource, namespace)
        assert may(desired.members, ann, verb, resource, "shop")


@pytest.mark.parametrize("resource", [":resourcequotas", ":limitranges", "policy.karmada.io:federatedresourcequotas"])
def test_what_limits_a_namespace_is_written_with_rights_on_the_instance(resource: str) -> None:
    ann = "kairship:user:ann"
    for scope, role, writes in (
        (on("one", "shop"), Role.ADMIN, False),
        (on("one", "shop"), Role.PLATFORM_ADMIN, False),
        (on("one"), Role.EDITOR, False),
        (on("one"), Role.ADMIN, True),
    ):
        objects = made_of(bind("ann", role, scope)).instance
        assert may(objects, ann, "list", resource, "shop")
        for verb in ("create", "update", "patch", "delete", "deletecollection", "propagate", "override"):
            assert may(objects, ann, verb, resource, "shop") is writes, (scope, role, verb)


def test_markers_hold_everywhere_in_the_instance_and_not_in_members() -> None:
    ann = "kairship:user:ann"
    editor = made_of(bind("ann", Role.EDITOR, on("one")))
    assert may(editor.instance, ann, "propagate", "apps:deployments", "karmada-system")
    assert may(editor.instance, ann, "override", ":secrets")
    assert may(editor.instance, ann, "propagate", "example.org:widgets")
    assert may(editor.instance, ann, "propagate", "example.org:planets")
    assert not may(editor.instance, ann, "create", "apps:deployments", "karmada-system")
    assert not may(editor.instance, ann, "override", "apps:deployments/scale")
    part = made_of(bind("ann", Role.EDITOR, on("one", "shop")))
    assert may(part.instance, ann, "propagate", "example.org:widgets", "shop")
    assert not may(part.instance, ann, "propagate", "example.org:widgets", "default")
    assert not may(part.instance, ann, "propagate", "example.org:planets", "shop")
    admin, root = (made_of(bind("ann", role, on("one"))) for role in (Role.ADMIN, Role.PLATFORM_ADMIN))
    for marker in ("propagate", "override"):
        assert not may(admin.instance, ann, marker, "rbac.authorization.k8s.io:clusterroles")
        assert may(root.instance, ann, marker, "rbac.authorization.k8s.io:clusterroles")
    for desired in (editor, part, admin, root):
        assert not any(is_marker(verb) for _, _, _, verb, _ in allowed(desired.members, ann))


def test_cluster_scoped_configuration_of_members_is_only_read() -> None:
    ann = "kairship:user:ann"
    desired = made_of(bind("ann", Role.PLATFORM_ADMIN, on()))
    for resource in (
        "apiextensions.k8s.io:customresourcedefinitions",
        "rbac.authorization.k8s.io:clusterrolebindings",
        "apiregistration.k8s.io:apiservices",
        "scheduling.k8s.io:priorityclasses",
    ):
        for verb in ("create", "update", "patch", "delete", "deletecollection"):
            assert may(desired.instance, ann, verb, resource)
            assert not may(desired.members, ann, verb, resource)
        assert may(desired.members, ann, "watch", resource)
    assert may(desired.members, ann, "create", ":namespaces")
    assert may(desired.members, ann, "create", "rbac.authorization.k8s.io:roles", "shop")
    assert may(desired.members, ann, "update", "example.org:planets")


def test_grants_of_several_bindings_add_up() -> None:
    """One role gives a right, another one opens the credentials of members, as the authoriser adds them up."""
    parts = (
        bind("ann", {"kairship.secrets.reveal"}, on("one")),
        bind("ann", {MEMBER_CREDENTIALS_PERMISSION}, on()),
    )
    assert may(made_of(*parts).instance, "kairship:user:ann", "get", ":secrets", "karmada-cluster")
    assert not may(made_of(parts[0]).instance, "kairship:user:ann", "get", ":secrets", "karmada-cluster")


@pytest.mark.parametrize(
    "binding",
    [
        bind("ann", Role.ADMIN, on("one"), revoked=True),
        bind("ann", Role.ADMIN, on("two")),
        bind("ann", Role.ADMIN, on(workspace="1")),
        bind("ann", Role.ADMIN, on("one", "karmada-cluster")),
        bind("ann", {"kairship.unheard.of", "ghippo.users.get"}, on("one", "shop")),
    ],
    ids=["revoked", "another instance", "workspace", "namespace of the system", "unknown"],
)
def test_what_grants_nothing_makes_nothing(binding: Binding) -> None:
    desired = made_of(binding)
    roles = {key.name for key in desired.instance if key.name != "kairship-access-carrier"}
    assert roles == set()
    assert desired.members == {}


def test_without_clusters_there_is_no_right_on_all_of_them() -> None:
    """A rule without resource names would apply to every cluster."""
    desired = made_of(bind("ann", Role.ADMIN, on("one")), clusters=())
    assert not [content for content in desired.instance.values() if "clusters/proxy" in str(content)]


def test_those_who_hold_the_same_share_their_objects() -> None:
    crowd = [bind(f"user-{number}", Role.EDITOR, on("one")) for number in range(50)]
    assert made_of(*crowd).instance.keys() == made_of(crowd[0]).instance.keys()


def test_every_subject_can_be_named_to_the_members() -> None:
    """Karmada refuses a whole request if one of its groups cannot be impersonated."""
    desired = made_of(bind("ann", Role.VIEWER, on("one")), bind("%crew", {"kairship.pods.get"}, on("one", "shop")))
    carrier = desired.instance[ObjectKey("ClusterRoleBinding", "", "kairship-access-carrier")]
    assert [each["name"] for each in carrier["subjects"]] == ["kairship:group:crew", "kairship:user:ann"]
    carried = made_of(bind("ann", (), on("one"))).instance
    assert {key.name for key in carried} == {"kairship-access-carrier"}
    proxy = desired.instance[ObjectKey("ClusterRoleBinding", "", "kairship-access-proxy")]
    assert [each["name"] for each in proxy["subjects"]] == ["kairship:user:ann"]


def test_a_work_has_the_name_that_karmada_gives() -> None:
    # From Karmada's own documentation: the Work of Deployment default/nginx.
    assert work_name(ObjectKey("Deployment", "default", "nginx")) == "nginx-687f7fb96f"
    assert work_name(ObjectKey("ClusterRole", "", "System:Node")).startswith("system.node-")


def test_an_object_is_compared_without_what_karmada_adds() -> None:
    key = ObjectKey("ClusterRole", "", "kairship-access-x-wide")
    content = {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}
    [manifest] = work("east", key, content)["spec"]["workload"]["manifests"]
    metadata = manifest["metadata"]
    marked = {
        **metadata,
        "annotations": {**metadata["annotations"], "of": "karmada"},
        "labels": {**metadata["labels"], "a": "b"},
    }
    assert matches({**manifest, "metadata": marked}, "east", key, content)
    changes: list[dict[str, Any]] = [
        {"rules": []},
        {"kind": "Role"},
        {"metadata": {"name": key.name}},
        {"metadata": {**metadata, "annotations": {}}},
        {"metadata": {**metadata, "labels": {}}},
        {"subjects": [{"kind": "User", "name": "mallory"}]},
    ]
    for changed in changes:
        assert not matches({**manifest, **changed}, "east", key, content), changed
    assert not matches(manifest, "west", key, content)
