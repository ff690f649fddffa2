"""Which callers may reach member clusters, and which reads the index may answer."""

import pytest
from support.bindings import World, bind, on

from kairship.access import Attributes, RbacScope, Role
from kairship.access.freshness import GRACE
from kairship.apiserver.proxy.request.authorisation import Authorisation, ProxyAuthoriser
from kairship.apiserver.proxy.request.request_info import NonResourceRequest, RequestInfo, ResourceRequest
from kairship.apiserver.proxy.request.target import Target
from kairship.rpc.calls import Caller
from kairship.rpc.errors import NotFound, PermissionDenied, Unavailable

GET, TO_MEMBERS = "kairship.deployments.get", "kairship.clusters.proxy"


def admit(
    caller: Caller, *, verb: str = "list", subresource: str = "", namespace: str = "", cluster: str | None = None
) -> Authorisation:
    authoriser = ProxyAuthoriser(World(bind("ann", Role.EDITOR, on("east"))).authoriser)
    return authoriser.authorise(
        caller,
        Target(instance="east", cluster=cluster, path="/"),
        deployments(verb, subresource=subresource, namespace=namespace),
    )


def deployments(verb: str = "list", *, subresource: str = "", namespace: str = "") -> ResourceRequest:
    attributes = Attributes(
        verb=verb, group="apps", resource="deployments", subresource=subresource, namespace=namespace
    )
    return ResourceRequest(attributes=attributes, version="v1", name="")


def test_a_limited_token_reaches_members_only_with_that_permission() -> None:
    narrow = Caller("ann", "ann", limited_to=frozenset({GET}))
    assert admit(narrow).extent is RbacScope.INSTANCE
    with pytest.raises(PermissionDenied, match=TO_MEMBERS):
        admit(narrow, cluster="frankfurt")
    wide = Caller("ann", "ann", limited_to=frozenset({GET, TO_MEMBERS}))
    assert admit(wide, cluster="frankfurt").extent is RbacScope.INSTANCE


@pytest.mark.parametrize(("verb", "subresource"), [("create", ""), ("delete", ""), ("get", "status"), ("get", "scale")])
def test_only_reads_of_whole_objects_are_for_the_index(verb: str, subresource: str) -> None:
    admitted = admit(Caller("ann", "ann"), verb=verb, subresource=subresource, namespace="shop")
    assert admitted.granted
    assert admitted.extent is None


ANN, EAST = Caller("ann", "ann"), Target(instance="east", cluster=None, path="/")


def test_a_cached_grant_ends_with_its_binding() -> None:
    binding = bind("ann", Role.EDITOR, on("east"))
    world = World(binding)
    authoriser = ProxyAuthoriser(world.authoriser)
    for _ in range(2):
        assert authoriser.authorise(ANN, EAST, deployments()).granted
    world.grants.remove(binding.name)
    with pytest.raises(NotFound):
        authoriser.authorise(ANN, EAST, deployments())


def test_a_cached_grant_ends_when_the_instance_is_recreated() -> None:
    world = World(bind("ann", Role.EDITOR, on("east")))
    authoriser = ProxyAuthoriser(world.authoriser)
    assert authoriser.authorise(ANN, EAST, deployments()).granted
    world.instances.put("east", "uid-of-another")
    with pytest.raises(NotFound):
        authoriser.authorise(ANN, EAST, deployments())


async def test_a_cached_grant_is_decided_anew_while_rights_may_be_out_of_date() -> None:
    world = World(bind("ann", Role.EDITOR, on("east")))
    authoriser = ProxyAuthoriser(world.authoriser)
    for verb in ("list", "delete"):
        assert authoriser.authorise(ANN, EAST, deployments(verb, namespace="shop")).granted
    world.freshness.mark_disconnected()
    assert authoriser.authorise(ANN, EAST, deployments(namespace="shop")).granted
    with pytest.raises(Unavailable):
        authoriser.authorise(ANN, EAST, deployments("delete", namespace="shop"))
    await world.clock.advance(GRACE + 1)
    with pytest.raises(Unavailable):
        authoriser.authorise(ANN, EAST, deployments(namespace="shop"))


def test_a_cached_grant_is_for_one_caller_and_one_scope() -> None:
    world = World(bind("ann", Role.EDITOR, on("east", "shop")))
    authoriser = ProxyAuthoriser(world.authoriser)
    assert authoriser.authorise(ANN, EAST, deployments(namespace="shop")).granted
    assert not authoriser.authorise(ANN, EAST, deployments(namespace="bank")).granted
    assert not authoriser.authorise(ANN, EAST, deployments()).granted
    with pytest.raises(NotFound):
        authoriser.authorise(ANN, Target(instance="west", cluster=None, path="/"), deployments(namespace="shop"))
    with pytest.raises(NotFound):
        authoriser.authorise(Caller("bob", "bob"), EAST, deployments(namespace="shop"))
    narrow = Caller("ann", "ann", limited_to=frozenset({"kairship.pods.get"}))
    with pytest.raises(PermissionDenied):
        authoriser.authorise(narrow, EAST, deployments(namespace="shop"))


@pytest.mark.parametrize(
    ("request_info", "wanted"),
    [
        (deployments("impersonate"), "impersonate deployments.apps"),
        (deployments("get", subresource="proxy", namespace="shop"), "get deployments.apps/proxy in namespace shop"),
        (NonResourceRequest(verb="get", path="/metrics"), "get /metrics"),
    ],
)
def test_what_no_role_grants_is_named_in_the_refusal(request_info: RequestInfo, wanted: str) -> None:
    authoriser = ProxyAuthoriser(World(bind("ann", Role.ADMIN, on("east"))).authoriser)
    for cluster, server in ((None, "instance east"), ("oregon", "cluster oregon")):
        with pytest.raises(PermissionDenied) as refused:
            authoriser.authorise(ANN, Target(instance="east", cluster=cluster, path="/"), request_info)
        assert refused.value.message == (
            f"{wanted} is not available through the plane, and no role grants it; "
            f"the operator of {server} can do it with a kubeconfig of that API server itself"
        )


def test_a_grant_inside_takes_the_right_to_reach_the_member() -> None:
    member = Target(instance="east", cluster="oregon", path="/")
    discovery = NonResourceRequest(verb="get", path="/api")
    create = deployments("create", namespace="shop")
    for what, reaches in ((Role.EDITOR, True), (["kairship.deployments.create"], False)):
        authoriser = ProxyAuthoriser(World(bind("ann", what, on("east", "shop"))).authoriser)
        assert authoriser.grants_inside(ANN, EAST, create)
        assert authoriser.grants_inside(ANN, member, create) is reaches
        assert authoriser.grants_inside(ANN, member, discovery) is reaches
        assert not authoriser.grants_inside(ANN, EAST, discovery)
        assert not authoriser.grants_inside(ANN, EAST, deployments("create", namespace="bank"))


def request(verb: str, resource: str, group: str = "", namespace: str = "") -> ResourceRequest:
    attributes = Attributes(verb=verb, group=group, resource=resource, namespace=namespace)
    return ResourceRequest(attributes=attributes, version="v1", name="")


@pytest.mark.parametrize(
    ("request_info", "message"),
    [
        (
            request("list", "configmaps", namespace="karmada-system"),
            (
                "kairship.systemnamespaces.use is needed for list configmaps in namespace karmada-system: "
                "the role Admin on the instance has it; ask an administrator for it"
            ),
        ),
        (
            request("list", "secrets"),
            (
                "kairship.membercredentials.use is needed for list secrets: "
                "the role Platform Admin has it; ask an administrator for it"
            ),
        ),
        (
            request("get", "works", "work.karmada.io", namespace="shop"),
            (
                "kairship.works.get is needed for get works.work.karmada.io in namespace shop: "
                "the role Platform Admin has it; ask an administrator for it"
            ),
        ),
        (
            request("patch", "resourceinterpretercustomizations", "config.karmada.io"),
            (
                "kairship.resourceinterpretercustomizations.update is needed for "
                "patch resourceinterpretercustomizations.config.karmada.io: "
                "the role Platform Admin has it; ask an administrator for it"
            ),
        ),
    ],
)
def test_a_refusal_names_the_request_the_permission_and_the_least_role(
    request_info: ResourceRequest, message: str
) -> None:
    authoriser = ProxyAuthoriser(World(bind("ann", Role.EDITOR, on("east"))).authoriser)
    with pytest.raises(PermissionDenied) as refused:
        authoriser.authorise(ANN, EAST, request_info)
    assert refused.value.message == message


@pytest.mark.parametrize(
    ("group", "resource"),
    [
        ("apiextensions.k8s.io", "customresourcedefinitions"),
        ("rbac.authorization.k8s.io", "clusterroles"),
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
        ("scheduling.k8s.io", "priorityclasses"),
    ],
)
def test_cluster_scoped_configuration_of_members_is_only_read(group: str, resource: str) -> None:
    authoriser = ProxyAuthoriser(World(bind("ann", Role.PLATFORM_ADMIN, on())).authoriser)
    member = Target(instance="east", cluster="oregon", path="/")
    for verb in ("create", "update", "patch", "delete", "deletecollection"):
        assert authoriser.authorise(ANN, EAST, request(verb, resource, group)).granted
        assert not authoriser.grants_inside(ANN, member, request(verb, resource, group))
        with pytest.raises(PermissionDenied, match="is not available through the plane"):
            authoriser.authorise(ANN, member, request(verb, resource, group))
    assert authoriser.authorise(ANN, member, request("list", resource, group)).granted
    assert authoriser.authorise(ANN, member, request("create", "namespaces")).granted
