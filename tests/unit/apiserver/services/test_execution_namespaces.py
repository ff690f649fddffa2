"""The execution namespaces of instances, as memberships come and go."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from kairship.apiserver.services.execution_namespaces import ExecutionNamespaces
from kairship.reconcile import Change
from kairship.resources import MembershipSpec
from kairship.rpc.errors import Unavailable
from kairship.rpc.resource_cache import SeenMembership, SeenMetadata


class Memberships:
    """A reflector whose changes the test reports."""

    synced = False

    def subscribe(self, handler: Any) -> None:
        self.report = handler


def member(name: str, instance: str) -> SeenMembership:
    return SeenMembership(metadata=SeenMetadata(name=name), spec=MembershipSpec(instance=instance))


def test_they_follow_the_memberships() -> None:
    memberships = Memberships()
    found = ExecutionNamespaces(cast("Any", SimpleNamespace(memberships=SimpleNamespace(reflector=memberships))))
    with pytest.raises(Unavailable):
        found.of("east")
    memberships.synced = True
    assert found.of("east") == ()
    for name, instance in (("oregon", "east"), ("frankfurt", "east"), ("paris", "west")):
        memberships.report(Change(None, member(name, instance)))
    assert found.of("east") == ("karmada-es-frankfurt", "karmada-es-oregon")
    memberships.report(Change(member("oregon", "east"), member("oregon", "east")))
    assert found.of("east") == ("karmada-es-frankfurt", "karmada-es-oregon")
    memberships.report(Change(member("oregon", "east"), None))
    assert found.of("east") == ("karmada-es-frankfurt",)
    assert found.of("west") == ("karmada-es-paris",)
