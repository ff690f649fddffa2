"""Who is let into member clusters, and what of their reads the index may answer."""

import pytest
from support.bindings import World, bind, on

from kairship.access import Attributes, Extent, Role
from kairship.access.freshness import GRACE
from kairship.apiserver.proxy.asking import Asked
from kairship.apiserver.proxy.rights import Admitted, ProxyRights
from kairship.apiserver.proxy.target import Target
from kairship.rpc.calls import Caller
from kairship.rpc.errors import NotFound, PermissionDenied, Unavailable

GET, TO_MEMBERS = "kairship.deployments.get", "kairship.clusters.proxy"


def admit(
    caller: Caller, *, verb: str = "list", subresource: str = "", namespace: str = "", cluster: str | None = None
) -> Admitted:
    rights = ProxyRights(World(bind("ann", Role.EDITOR, on("east"))).authoriser)
    return rights.admit(
        caller,
        Target(instance="east", cluster=cluster, path="/"),
        deployments(verb, subresource=subresource, namespace=namespace),
    )


def deployments(verb: str = "list", *, subresource: str = "", namespace: str = "") -> Asked:
    attributes = Attributes(
        verb=verb, group="apps", resource="deployments", subresource=subresource, namespace=namespace
    )
    return Asked(attributes=attributes, version="v1", name="")


def test_a_token_reaches_into_members_only_if_it_is_for_that() -> None:
    narrow = Caller("ann", "ann", limited_to=frozenset({GET}))
    assert admit(narrow).extent is Extent.WHOLE
    with pytest.raises(PermissionDenied, match=TO_MEMBERS):
        admit(narrow, cluster="frankfurt")
    wide = Caller("ann", "ann", limited_to=frozenset({GET, TO_MEMBERS}))
    assert admit(wide, cluster="frankfurt").extent is Extent.WHOLE


@pytest.mark.parametrize(("verb", "subresource"), [("create", ""), ("delete", ""), ("get", "status"), ("get", "scale")])
def test_only_reads_of_whole_objects_are_for_the_index(verb: str, subresource: str) -> None:
    admitted = admit(Caller("ann", "ann"), verb=verb, subresource=subresource, namespace="shop")
    assert admitted.granted
    assert admitted.extent is None


ANN, EAST = Caller("ann", "ann"), Target(instance="east", cluster=None, path="/")


def test_what_was_granted_before_ends_with_the_binding() -> None:
    binding = bind("ann", Role.EDITOR, on("east"))
    world = World(binding)
    rights = ProxyRights(world.authoriser)
    for _ in range(2):
        assert rights.admit(ANN, EAST, deployments()).granted
    world.holdings.remove(binding.name)
    with pytest.raises(NotFound):
        rights.admit(ANN, EAST, deployments())


def test_what_was_granted_before_is_not_granted_on_an_instance_made_anew() -> None:
    world = World(bind("ann", Role.EDITOR, on("east")))
    rights = ProxyRights(world.authoriser)
    assert rights.admit(ANN, EAST, deployments()).granted
    world.instances.put("east", "uid-of-another")
    with pytest.raises(NotFound):
        rights.admit(ANN, EAST, deployments())


async def test_what_was_granted_before_is_asked_again_without_contact() -> None:
    world = World(bind("ann", Role.EDITOR, on("east")))
    rights = ProxyRights(world.authoriser)
    for verb in ("list", "delete"):
        assert rights.admit(ANN, EAST, deployments(verb, namespace="shop")).granted
    world.freshness.lost()
    assert rights.admit(ANN, EAST, deployments(namespace="shop")).granted
    with pytest.raises(Unavailable):
        rights.admit(ANN, EAST, deployments("delete", namespace="shop"))
    await world.clock.advance(GRACE + 1)
    with pytest.raises(Unavailable):
        rights.admit(ANN, EAST, deployments(namespace="shop"))


def test_a_grant_is_of_one_caller_and_one_place() -> None:
    world = World(bind("ann", Role.EDITOR, on("east", "shop")))
    rights = ProxyRights(world.authoriser)
    assert rights.admit(ANN, EAST, deployments(namespace="shop")).granted
    assert not rights.admit(ANN, EAST, deployments(namespace="bank")).granted
    assert not rights.admit(ANN, EAST, deployments()).granted
    with pytest.raises(NotFound):
        rights.admit(ANN, Target(instance="west", cluster=None, path="/"), deployments(namespace="shop"))
    with pytest.raises(NotFound):
        rights.admit(Caller("bob", "bob"), EAST, deployments(namespace="shop"))
    narrow = Caller("ann", "ann", limited_to=frozenset({"kairship.pods.get"}))
    with pytest.raises(PermissionDenied):
        rights.admit(narrow, EAST, deployments(namespace="shop"))
