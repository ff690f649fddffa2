"""The table of permissions: the least role of each, its RBAC rules, and its description.

The options of the protos name permissions and this table defines them; the RBAC inside instances, the checks of the
native proxy, the catalogue of global management and the built-in roles are all derived from it.
"""

import functools
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import msgspec

from kairship.access.catalogue.kinds import KINDS, Kind
from kairship.access.catalogue.markers import MARKERS, OVERRIDE, PROPAGATE
from kairship.access.catalogue.roles import Role
from kairship.access.catalogue.rules import READ, VERBS, Rule


class Permission(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    """<product>.<resource>.<action>"""
    role: Role | None
    """The least role that has it; None if every signed-in user has it, for the user's own account."""
    about: str
    """What it allows, as the end of a sentence that begins with "Can"."""
    rules: tuple[Rule, ...] = ()
    """The RBAC rules that it means inside an instance and in its members."""
    custom: tuple[str, ...] = ()
    """Verbs on every custom resource of the instance; discovery says which kinds these are."""
    on_instance: bool = False
    """Whether only rights on the whole instance count for it, although it is about objects in namespaces."""
    delicate: bool = False
    """Whether it is refused at once while bindings may be out of date: writes, and reads of secret data."""

    @property
    def product(self) -> str:
        return self.name.split(".")[0]

    @property
    def resource(self) -> str:
        return self.name.split(".")[1]

    @property
    def action(self) -> str:
        return self.name.split(".")[2]


_WRITE_WORDS = {"create": "create", "update": "change", "delete": "delete"}
_MARKER_WORDS = {PROPAGATE: "let Karmada bring into members", OVERRIDE: "let Karmada change on the way into members"}


_SCALED = frozenset({"deployments", "statefulsets", "replicasets", "replicationcontrollers"})


def _of_kind(kind: Kind) -> Iterator[Permission]:
    def rules(verbs: tuple[str, ...], subresource: str = "") -> tuple[Rule, ...]:
        return tuple(
            Rule(group=group, resource=kind.plural + subresource, verbs=verbs, namespaced=kind.namespaced)
            for group in kind.groups
        )

    name, is_scaled = f"kairship.{kind.plural}", kind.plural in _SCALED
    yield Permission(
        name=f"{name}.get",
        role=kind.reader,
        about=f"see {kind.title}",
        rules=(*rules(READ), *rules(("get",), "/status"), *(rules(("get",), "/scale") if is_scaled else ())),
        delicate=kind.has_secrets,
    )
    if kind.writer is None:
        return
    least_for_marker = {"create": kind.propagator, "update": kind.overrider}
    for action, word in _WRITE_WORDS.items():
        marker, least = MARKERS.get(action), least_for_marker.get(action)
        yield Permission(
            name=f"{name}.{action}",
            role=kind.writer,
            about=f"{word} {kind.title}",
            rules=(
                *rules(VERBS[action]),
                *(rules((marker,)) if marker and least is None else ()),
                *(rules(VERBS[action], "/scale") if is_scaled and action == "update" else ()),
            ),
            on_instance=kind.written_on_instance,
            delicate=True,
        )
        if marker and least is not None:
            yield Permission(
                name=f"{name}.{marker}",
                role=least,
                about=f"{_MARKER_WORDS[marker]} {kind.title}",
                rules=rules((marker,)),
                delicate=True,
            )


def _pod(subresource: str, *verbs: str) -> Rule:
    return Rule(group="", resource=f"pods/{subresource}", verbs=verbs)


def _secret(action: str) -> tuple[Rule, ...]:
    return (Rule(group="", resource="secrets", verbs=_with_marker(action)),)


def _with_marker(action: str) -> tuple[str, ...]:
    return (*VERBS[action], MARKERS[action]) if action in MARKERS else VERBS[action]


def _usage(resource: str, *, namespaced: bool) -> Rule:
    return Rule(group="metrics.k8s.io", resource=resource, verbs=READ, namespaced=namespaced)


def _cluster(resource: str, *verbs: str, names_clusters: bool = False) -> tuple[Rule, ...]:
    return (
        Rule(
            group="cluster.karmada.io",
            resource=resource,
            verbs=verbs,
            namespaced=False,
            names_clusters=names_clusters,
        ),
    )


def _read(name: str, role: Role, about: str, *rules: Rule, custom: tuple[str, ...] = ()) -> Permission:
    return Permission(name=name, role=role, about=about, rules=rules, custom=custom)


def _act(name: str, role: Role, about: str, *rules: Rule, custom: tuple[str, ...] = ()) -> Permission:
    return Permission(name=name, role=role, about=about, rules=rules, custom=custom, delicate=True)


_V, _E, _A, _P = Role.VIEWER, Role.EDITOR, Role.ADMIN, Role.PLATFORM_ADMIN

_INSTANCES = (
    _read("kairship.instances.get", _V, "see instances and their settings"),
    _act("kairship.instances.create", _P, "create and adopt instances"),
    _act("kairship.instances.update", _A, "change an instance and its settings"),
    _act("kairship.instances.upgrade", _A, "upgrade an instance"),
    _act("kairship.instances.restore", _A, "restore an instance from a backup"),
    _act("kairship.instances.delete", _P, "delete instances"),
    _read("kairship.backups.get", _A, "see the backups of an instance"),
    _act("kairship.backups.create", _A, "take backups of an instance"),
    _act("kairship.backups.delete", _A, "delete backups of an instance"),
    _act("kairship.kubeconfigs.create", _A, "be issued a kubeconfig for an instance"),
    _act("kairship.systemnamespaces.use", _A, "use the namespaces in which Karmada keeps its own objects"),
    _act("kairship.membercredentials.use", _P, "use the credentials in the namespaces of Karmada and Kubernetes"),
    _read("kairship.clusters.get", _V, "see the clusters of an instance", *_cluster("clusters", *READ)),
    _act("kairship.clusters.join", _A, "join clusters to an instance"),
    _act("kairship.clusters.update", _A, "change clusters of an instance: labels, taints, cordon"),
    _act("kairship.clusters.remove", _A, "remove clusters from an instance"),
    _read(
        "kairship.clusters.proxy",
        _V,
        "make requests to member clusters, with the rights held on the objects there",
        *_cluster("clusters/proxy", "get", "create", "update", "patch", "delete", names_clusters=True),
    ),
    _read("kairship.cloudshells.get", _A, "see their own cloud shells"),
    _act("kairship.cloudshells.create", _A, "open a cloud shell for an instance"),
    _act("kairship.cloudshells.delete", _A, "close cloud shells"),
    _read(
        "kairship.metrics.get",
        _V,
        "see usage and health figures",
        _usage("pods", namespaced=True),
        _usage("nodes", namespaced=False),
    ),
    _read("kairship.images.get", _V, "see images and their registries"),
    _read("kairship.workspaces.get", _V, "see which workspace holds an instance or a namespace"),
    _act("kairship.workspaces.bind", _P, "put instances and namespaces into workspaces"),
)

_CLUSTERS = (
    _read("kpanda.clusters.get", _V, "see registered clusters, and those that could join an instance"),
    _act("kpanda.clusters.attach", _A, "join a cluster that their workspace holds to an instance"),
    _act("kpanda.clusters.create", _P, "register clusters"),
    _act("kpanda.clusters.update", _P, "change registered clusters, their labels and their credentials"),
    _act("kpanda.clusters.delete", _P, "remove clusters from container management"),
    _act("kpanda.kubeconfigs.create", _P, "be issued a kubeconfig for a cluster"),
    _read("kpanda.nodes.get", _V, "see the nodes of clusters"),
    _act("kpanda.nodes.update", _P, "change nodes: labels, taints, cordon"),
    _read("kpanda.search.get", _V, "search all instances and clusters for objects that they may see"),
    _read("kpanda.history.get", _V, "see usage over time"),
    _read("kpanda.collector.get", _A, "see how far the index lags behind"),
)

_RESOURCES = (
    _read("kairship.secrets.get", _V, "see which Secrets exist, but not their values"),
    Permission(
        name="kairship.secrets.reveal",
        role=_E,
        about="read the values of Secrets",
        rules=_secret("get"),
        delicate=True,
    ),
    _act("kairship.secrets.create", _E, "create Secrets", *_secret("create")),
    _act("kairship.secrets.update", _E, "change Secrets", *_secret("update")),
    _act("kairship.secrets.delete", _E, "delete Secrets", *_secret("delete")),
    Permission(
        name="kairship.pods.logs", role=_V, about="read logs of Pods", rules=(_pod("log", "get"),), delicate=True
    ),
    _act(
        "kairship.pods.exec",
        _E,
        "run commands in Pods, attach to them and forward their ports",
        *(_pod(each, "get", "create") for each in ("exec", "attach", "portforward")),
        _pod("ephemeralcontainers", "update", "patch"),
    ),
    _act("kairship.pods.evict", _E, "evict Pods", _pod("eviction", "create")),
    _act("kairship.deployments.promote", _E, "promote Deployments of a member cluster to the instance"),
    _act("kairship.services.promote", _E, "promote Services of a member cluster to the instance"),
    _act("kairship.ingresses.promote", _E, "promote Ingresses of a member cluster to the instance"),
    _act("kairship.aggregations.create", _E, "create resources and their policies in one request"),
    _read("kairship.customresources.get", _V, "see custom resources", custom=READ),
    _act("kairship.customresources.create", _E, "create custom resources", custom=_with_marker("create")),
    _act("kairship.customresources.update", _E, "change custom resources", custom=_with_marker("update")),
    _act("kairship.customresources.delete", _E, "delete custom resources", custom=VERBS["delete"]),
)


def _managed(resource: str, title: str, role: Role = _P, *, seen_by: Role | None = None) -> Iterator[Permission]:
    yield _read(f"ghippo.{resource}.get", seen_by or role, f"see {title}")
    for action, word in _WRITE_WORDS.items():
        yield _act(f"ghippo.{resource}.{action}", role, f"{word} {title}")


_GLOBAL = (
    *_managed("users", "users"),
    *_managed("groups", "groups and memberships"),
    *_managed("roles", "custom roles", seen_by=_V),
    *_managed("folders", "folders", seen_by=_V),
    _read("ghippo.workspaces.get", _V, "see a workspace, its resources and its members"),
    _act("ghippo.workspaces.create", _P, "create workspaces"),
    _act("ghippo.workspaces.update", _A, "change a workspace and its members"),
    _act("ghippo.workspaces.bind", _P, "add resources to a workspace and remove them"),
    _act("ghippo.workspaces.delete", _P, "delete workspaces"),
    _read("ghippo.bindings.get", _P, "see role bindings"),
    _act("ghippo.bindings.create", _P, "grant roles"),
    _act("ghippo.bindings.delete", _P, "revoke roles"),
    *_managed("webhooks", "webhooks"),
    *_managed("identityproviders", "identity providers"),
    _read("ghippo.permissions.get", _V, "see the catalogue of permissions"),
    _read("ghippo.audits.get", _P, "read the audit log"),
    Permission(name="ghippo.self.get", role=None, about="see their own account"),
    Permission(name="ghippo.self.update", role=None, about="change their own account and its tokens", delicate=True),
)  # fmt: skip


@functools.cache
def permissions() -> Mapping[str, Permission]:
    """All permissions by name."""
    kinds = (permission for kind in KINDS for permission in _of_kind(kind))
    found = {permission.name: permission for permission in (*_INSTANCES, *_RESOURCES, *kinds, *_CLUSTERS, *_GLOBAL)}
    return MappingProxyType(found)


@functools.cache
def permissions_of(role: Role) -> frozenset[str]:
    """The names of the permissions that a built-in role has."""
    return frozenset(each.name for each in permissions().values() if each.role is not None and each.role <= role)
