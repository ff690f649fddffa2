"""Who is let into member clusters, and what of their reads the index may answer."""

import pytest
from support.bindings import World, bind, on

from kairship.access import Attributes, Extent, Role
from kairship.apiserver.proxy.asking import Asked
from kairship.apiserver.proxy.rights import Admitted, ProxyRights
from kairship.apiserver.proxy.target import Target
from kairship.rpc.calls import Caller
from kairship.rpc.errors import PermissionDenied

GET, TO_MEMBERS = "kairship.deployments.get", "kairship.clusters.proxy"


def admit(
    caller: Caller, *, verb: str = "list", subresource: str = "", namespace: str = "", cluster: str | None = None
) -> Admitted:
    rights = ProxyRights(World(bind("ann", Role.EDITOR, on("east"))).authoriser)
    attributes = Attributes(
        verb=verb, group="apps", resource="deployments", subresource=subresource, namespace=namespace
    )
    target = Target(instance="east", cluster=cluster, path="/")
    return rights.admit(caller, target, Asked(attributes=attributes, version="v1", name=""))


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
