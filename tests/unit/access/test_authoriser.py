"""Decisions of the authoriser: default deny, scopes, groups, tokens, hidden instances, and stale bindings."""

from collections.abc import Iterable

import pytest
from support.bindings import World, bind, on

from kairship.access import (
    Attributes,
    Authoriser,
    Caller,
    Decision,
    Freshness,
    RbacScope,
    Role,
)
from kairship.resources import Coverage

ALLOWED, FORBIDDEN, HIDDEN, UNCERTAIN = Decision.ALLOWED, Decision.FORBIDDEN, Decision.HIDDEN, Decision.UNCERTAIN
GET, CREATE = "kairship.deployments.get", "kairship.deployments.create"


def test_nobody_may_anything_by_default() -> None:
    world = World()
    assert world.ask("alice", GET, "east") is HIDDEN
    assert world.authoriser.on_platform(Caller("alice"), "kairship.instances.create") is FORBIDDEN
    assert not world.authoriser.coverage(Caller("alice"), GET)


def test_a_right_on_one_instance_is_none_on_another() -> None:
    world = World(bind("alice", Role.VIEWER, on("east")))
    assert world.ask("alice", GET, "east") is ALLOWED
    assert world.ask("alice", GET, "east", "shop") is ALLOWED
    assert world.ask("alice", CREATE, "east") is FORBIDDEN
    assert world.ask("alice", GET, "west") is HIDDEN
    assert world.ask("bob", GET, "east") is HIDDEN


def test_an_instance_that_is_not_there_looks_like_one_that_is_not_yours() -> None:
    world = World(bind("alice", Role.VIEWER, on("east")))
    assert world.ask("alice", GET, "west") is world.ask("alice", GET, "nowhere") is HIDDEN


def test_a_right_on_a_namespace_is_for_that_namespace() -> None:
    world = World(bind("alice", Role.EDITOR, on("east", "shop")))
    assert world.ask("alice", CREATE, "east", "shop") is ALLOWED
    assert world.ask("alice", CREATE, "east", "bank") is FORBIDDEN
    assert world.ask("alice", GET, "east") is FORBIDDEN
    assert world.authoriser.on_part_of_instance(Caller("alice"), GET, "east") is ALLOWED
    assert world.authoriser.on_part_of_instance(Caller("alice"), GET, "west") is HIDDEN


def test_a_right_on_the_platform_is_for_every_instance() -> None:
    world = World(bind("root", Role.PLATFORM_ADMIN, on()))
    assert world.ask("root", "kairship.instances.delete", "west") is ALLOWED
    assert world.ask("root", GET, "nowhere") is ALLOWED  # it may have been made a moment ago; the service will know


def test_an_instance_made_anew_under_the_same_name_is_another() -> None:
    world = World(bind("alice", Role.ADMIN, on("east")))
    world.instances.put("east", "another-uid")
    assert world.ask("alice", GET, "east") is HIDDEN


def test_groups_count_and_only_while_one_is_in_them() -> None:
    world = World(bind("%devs", Role.EDITOR, on("east")))
    assert world.authoriser.on_instance(Caller("alice", ["ops", "devs"]), CREATE, "east") is ALLOWED
    assert world.authoriser.on_instance(Caller("alice", ["ops"]), CREATE, "east") is HIDDEN
    assert world.ask("devs", CREATE, "east") is HIDDEN  # a user who is called like the group


def test_an_instance_hears_only_of_groups_that_are_bound_there() -> None:
    world = World(bind("%devs", Role.EDITOR, on("east")), bind("%ops", Role.VIEWER, on("west", "shop")))
    caller = Caller("alice", ["devs", "ops", "secret-project"])
    assert world.authoriser.groups_on(caller, "east") == ("devs",)
    assert world.authoriser.groups_on(caller, "west") == ("ops",)


def test_an_instance_hears_of_groups_that_are_bound_on_the_platform() -> None:
    world = World(bind("%admins", Role.PLATFORM_ADMIN, on()))
    assert world.authoriser.groups_on(Caller("alice", ["admins", "others"]), "east") == ("admins",)


def test_a_workspace_with_the_number_of_something_else_is_not_that() -> None:
    world = World(bind("alice", Role.PLATFORM_ADMIN, on(workspace="uid-east")))
    assert world.ask("alice", GET, "east") is HIDDEN
    assert world.authoriser.on_workspace(Caller("alice"), "ghippo.workspaces.update", "uid-east") is ALLOWED
    assert world.authoriser.on_workspace(Caller("alice"), "ghippo.workspaces.update", "8") is HIDDEN
    assert world.authoriser.workspaces(Caller("alice"), "ghippo.workspaces.get") == frozenset({"uid-east"})


def test_the_last_of_several_bindings_takes_the_right_away() -> None:
    first, second = bind("alice", Role.VIEWER, on("east")), bind("alice", Role.EDITOR, on("east"))
    world = World(first, second)
    world.grants.remove(second.name)
    assert world.ask("alice", GET, "east") is ALLOWED
    assert world.ask("alice", CREATE, "east") is FORBIDDEN
    world.grants.remove(first.name)
    assert world.ask("alice", GET, "east") is HIDDEN
    assert len(world.grants) == 0


def test_a_withdrawn_binding_grants_nothing() -> None:
    world = World(bind("alice", Role.VIEWER, on("east"), name="b"))
    world.grants.put(bind("alice", Role.VIEWER, on("east"), name="b", revoked=True))
    assert world.ask("alice", GET, "east") is HIDDEN


def test_a_permission_that_the_table_does_not_have_opens_nothing() -> None:
    world = World(bind("alice", ["kairship.everything.do"], on()))
    assert world.authoriser.on_platform(Caller("alice"), "kairship.everything.do") is FORBIDDEN


def test_a_token_is_for_what_it_says() -> None:
    world = World(bind("alice", Role.ADMIN, on("east")))
    limited = Caller("alice", limited_to=frozenset({GET}))
    assert world.authoriser.on_instance(limited, GET, "east") is ALLOWED
    assert world.authoriser.on_instance(limited, CREATE, "east") is FORBIDDEN
    assert not world.authoriser.coverage(limited, CREATE)
    assert world.authoriser.on_self(limited, "ghippo.self.update") is FORBIDDEN


def test_coverage_names_what_a_list_may_show() -> None:
    world = World(bind("alice", Role.VIEWER, on("east")), bind("alice", Role.VIEWER, on("west", "shop")))
    coverage = world.authoriser.coverage(Caller("alice"), GET)
    assert not coverage.everywhere
    assert coverage.includes("east", "anything")
    assert coverage.includes("west")
    assert coverage.includes("west", "shop")
    assert not coverage.includes("west", "bank")
    assert not coverage.includes("nowhere")


@pytest.mark.parametrize("namespace", ["karmada-system", "karmada-cluster", "karmada-es-frankfurt", "kairship-system"])
def test_namespaces_of_karmada_itself_are_for_admins(namespace: str) -> None:
    world = World(bind("alice", Role.EDITOR, on("east")), bind("root", Role.ADMIN, on("east")))
    assert world.ask("alice", GET, "east", namespace) is FORBIDDEN
    assert world.ask("root", GET, "east", namespace) is ALLOWED


@pytest.mark.parametrize("namespace", ["karmada-cluster", "karmada-es-frankfurt", "kairship-system", "kube-system"])
def test_credentials_of_members_are_for_nobody_but_the_platform(namespace: str) -> None:
    world = World(bind("ann", Role.ADMIN, on("east")), bind("root", Role.PLATFORM_ADMIN, on()))

    def ask(who: str, verb: str, resource: str, subresource: str = "", *, member: bool = False) -> Decision:
        asked = Attributes(verb=verb, group="", resource=resource, subresource=subresource, namespace=namespace)
        return world.authoriser.on_kubernetes_request(Caller(who), "east", asked, member=member)

    for action in ("reveal", "create", "update", "delete"):
        assert world.ask("ann", f"kairship.secrets.{action}", "east", namespace) is FORBIDDEN
    for verb in ("get", "list", "watch", "create", "patch", "delete"):
        for member in (False, True):
            assert ask("ann", verb, "secrets", member=member) is FORBIDDEN
            assert ask("root", verb, "secrets", member=member) is ALLOWED
    # A Pod has the token of its account, and there are Pods in members only.
    for verb, subresource in (("create", ""), ("create", "exec"), ("patch", "ephemeralcontainers")):
        assert ask("ann", verb, "pods", subresource) is ALLOWED
        assert ask("ann", verb, "pods", subresource, member=True) is FORBIDDEN
    assert ask("ann", "get", "pods", "log", member=True) is ALLOWED
    assert ask("ann", "list", "configmaps", member=True) is ALLOWED


def test_a_right_bound_on_a_namespace_of_karmada_itself_does_not_open_it() -> None:
    world = World(bind("alice", Role.ADMIN, on("east", "karmada-cluster")))
    assert world.ask("alice", "kairship.secrets.reveal", "east", "karmada-cluster") is FORBIDDEN


def proxy(verb: str, resource: str, namespace: str = "") -> Attributes:
    return Attributes(verb=verb, group="", resource=resource, namespace=namespace)


def test_all_secrets_at_once_are_for_nobody_but_the_platform() -> None:
    world = World(
        bind("alice", Role.EDITOR, on("east")),
        bind("ann", Role.ADMIN, on("east")),
        bind("root", Role.PLATFORM_ADMIN, on()),
    )
    assert world.authoriser.on_kubernetes_request(Caller("alice"), "east", proxy("list", "secrets", "shop")) is ALLOWED
    assert world.authoriser.on_kubernetes_request(Caller("alice"), "east", proxy("list", "secrets")) is FORBIDDEN
    assert world.authoriser.on_kubernetes_request(Caller("alice"), "east", proxy("list", "pods")) is ALLOWED
    assert world.authoriser.on_kubernetes_request(Caller("ann"), "east", proxy("watch", "secrets")) is FORBIDDEN
    assert world.authoriser.on_kubernetes_request(Caller("root"), "east", proxy("list", "secrets")) is ALLOWED


def test_what_limits_a_namespace_is_changed_with_rights_on_the_instance() -> None:
    world = World(bind("alice", Role.ADMIN, on("east", "shop")), bind("root", Role.ADMIN, on("east")))
    alice, root = Caller("alice"), Caller("root")
    for change in ("kairship.resourcequotas.delete", "kairship.federatedresourcequotas.update"):
        assert world.ask("alice", change, "east", "shop") is FORBIDDEN
        assert world.ask("root", change, "east", "shop") is ALLOWED
        assert not world.authoriser.coverage(alice, change)
        assert world.authoriser.on_part_of_instance(alice, change, "east") is FORBIDDEN
        assert world.authoriser.explain(alice, change, instance="east", namespace="shop").bindings == ()
        assert world.authoriser.explain(root, change, instance="east", namespace="shop").bindings
    assert world.ask("alice", "kairship.resourcequotas.get", "east", "shop") is ALLOWED
    delete = proxy("delete", "resourcequotas", "shop")
    assert world.authoriser.rbac_scope_inside(alice, "east", delete, member=False) is None
    assert world.authoriser.rbac_scope_inside(root, "east", delete, member=False) is RbacScope.INSTANCE


def test_all_works_at_once_are_for_those_who_use_the_namespaces_of_the_system() -> None:
    world = World(bind("alice", ["kairship.works.get"], on("east")), bind("root", Role.PLATFORM_ADMIN, on()))
    works = Attributes(verb="list", group="work.karmada.io", resource="works")
    assert world.authoriser.on_kubernetes_request(Caller("alice"), "east", works) is FORBIDDEN
    assert world.authoriser.on_kubernetes_request(Caller("root"), "east", works) is ALLOWED


def test_a_cluster_of_a_workspace_is_covered_by_itself() -> None:
    attach, see = "kpanda.clusters.attach", "kpanda.clusters.get"
    world = World(
        bind("ann", Role.ADMIN, on(cluster="berlin")),
        bind("vic", Role.VIEWER, on(cluster="berlin")),
        bind("bob", Role.ADMIN, on("east")),
        bind("root", Role.PLATFORM_ADMIN, on()),
    )

    def covers(who: str, permission: str, cluster: str = "berlin", *, instance: str = "") -> bool:
        return world.authoriser.coverage(Caller(who), permission).includes_cluster(f"uid-{cluster}", instance)

    assert covers("ann", attach)
    assert covers("ann", see)
    assert not covers("ann", see, "paris")
    assert covers("vic", see)
    assert not covers("vic", attach)
    assert not covers("bob", see)
    assert not covers("bob", attach)
    assert covers("bob", see, instance="east")
    assert covers("root", attach, "paris")
    # A right on a cluster is none on an instance.
    assert world.ask("ann", GET, "east") is HIDDEN
    seen = world.authoriser.coverage(Caller("ann"), see)
    assert not Coverage().covers(seen)
    assert Coverage(everywhere=True).covers(seen)


def test_the_proxy_hides_instances_too() -> None:
    world = World(bind("alice", Role.VIEWER, on("east", "shop")))
    assert world.authoriser.on_kubernetes_request(Caller("alice"), "west", proxy("list", "pods")) is HIDDEN
    assert world.authoriser.on_kubernetes_request(Caller("alice"), "east", proxy("list", "nothings")) is FORBIDDEN
    assert world.authoriser.on_non_resource_path(Caller("alice"), "east", "get", "/version") is ALLOWED
    assert world.authoriser.on_non_resource_path(Caller("alice"), "east", "get", "/metrics") is FORBIDDEN
    assert world.authoriser.on_non_resource_path(Caller("alice"), "west", "get", "/version") is HIDDEN


def test_without_contact_writes_end_at_once_and_reads_after_a_minute() -> None:
    world = World(bind("alice", Role.ADMIN, on("east")))
    world.freshness.mark_disconnected()
    assert world.ask("alice", CREATE, "east") is UNCERTAIN
    assert world.ask("alice", "kairship.secrets.reveal", "east", "shop") is UNCERTAIN
    assert world.ask("alice", GET, "east") is ALLOWED
    world.clock.pass_time(59)
    world.freshness.mark_disconnected()  # still: it does not begin anew
    assert world.ask("alice", GET, "east") is ALLOWED
    world.clock.pass_time(2)
    assert world.ask("alice", GET, "east") is UNCERTAIN
    assert not world.authoriser.coverage(Caller("alice"), GET)
    world.freshness.mark_connected()
    assert world.ask("alice", CREATE, "east") is ALLOWED


def test_before_the_first_contact_nothing_is_allowed() -> None:
    world = World(bind("alice", Role.ADMIN, on("east")))
    authoriser = Authoriser(world.grants, world.instances, Freshness(world.clock))
    assert authoriser.on_instance(Caller("alice"), GET, "east") is UNCERTAIN


def test_an_explanation_names_the_binding_or_the_role() -> None:
    world = World(bind("%devs", Role.VIEWER, on("east"), name="by-devs"))
    caller = Caller("alice", ["devs"])
    allowed = world.authoriser.explain(caller, GET, instance="east")
    assert allowed.decision is ALLOWED
    assert [binding.name for binding in allowed.bindings] == ["by-devs"]
    refused = world.authoriser.explain(caller, CREATE, instance="east")
    assert (refused.decision, refused.bindings, refused.role) == (FORBIDDEN, (), Role.EDITOR)
    assert world.authoriser.explain(caller, "no.such.thing").role is None
    hidden = world.authoriser.explain(Caller("bob"), GET, instance="east")
    assert (hidden.decision, hidden.bindings) == (HIDDEN, ())


def test_equal_sets_of_permissions_are_kept_once() -> None:
    def granted(names: Iterable[str]) -> frozenset[str]:
        return bind("alice", list(names), on()).spec.permissions

    first = granted([GET, CREATE])
    assert granted([CREATE, GET]) is first


def test_rights_inside_do_not_add_up() -> None:
    """The index answers only what RBAC, which is written per subject and scope, would allow as well."""
    whole, part, through = on("east"), on("east", "shop"), "kairship.clusters.proxy"
    world = World(
        bind("viewer", Role.VIEWER, whole),
        bind("narrow", Role.VIEWER, part),
        bind("alice", [GET], whole),
        bind("%proxies", [through], whole),
        bind("mixed", [GET], on("east", "karmada-system")),
        bind("mixed", ["kairship.systemnamespaces.use"], whole),
    )

    def scope(who: Caller, namespace: str = "shop", *, member: bool = False, group: str = "apps") -> RbacScope | None:
        asked = Attributes(verb="get", group=group, resource="deployments", namespace=namespace)
        return world.authoriser.rbac_scope_inside(who, "east", asked, member=member)

    assert scope(Caller("viewer")) is scope(Caller("viewer"), "") is RbacScope.INSTANCE
    assert scope(Caller("viewer"), member=True) is RbacScope.INSTANCE
    assert scope(Caller("narrow")) is scope(Caller("narrow"), member=True) is RbacScope.NAMESPACE
    assert scope(Caller("narrow"), "bank") is scope(Caller("narrow"), "") is None
    assert scope(Caller("alice", ["proxies"])) is RbacScope.INSTANCE
    assert scope(Caller("alice", ["proxies"]), member=True) is None
    assert scope(Caller("mixed"), "karmada-system") is None
    assert world.ask("mixed", GET, "east", "karmada-system") is FORBIDDEN
    assert scope(Caller("viewer", limited_to=frozenset({GET})), member=True) is None
    assert scope(Caller("viewer"), member=True, group="policy.karmada.io") is None
    assert scope(Caller("nobody")) is None
