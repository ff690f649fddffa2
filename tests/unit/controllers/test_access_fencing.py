"""A process that no longer leads writes no RBAC, whatever it was about to do."""

from typing import Any, cast

import pytest
from support.bindings import bind, on

from kairship.access import Role
from kairship.controllers.access.desired import desired_rbac
from kairship.controllers.access.grants import collect_grants
from kairship.controllers.access.rbac_writer import RbacWriter
from kairship.controllers.instance_cache import InstanceCache
from kairship.kube import Client
from kairship.reconcile import Context, LeaderTerm, Store, SystemClock, TermEnded


class Empty:
    """A collection with nothing in it."""

    def __init__(self) -> None:
        self.store: Store[Any] = Store()


class Instance:
    """An instance that has nothing yet."""

    def __init__(self) -> None:
        self.roles = self.wide_bindings = self.bindings = self.works = Empty()


class Untouched:
    """A client whose use fails the test."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} was called")


async def test_a_leader_of_the_past_writes_nothing() -> None:
    clock = SystemClock()
    term = LeaderTerm(scope="test", number=1, until=clock.now() + 60, clock=clock)
    nobody = cast("Any", None)
    context = Context(client=nobody, owner=nobody, events=nobody, log=nobody, clock=clock, term=term)
    writer = RbacWriter(context, cast("Client", Untouched()), cast("InstanceCache", Instance()), frozenset({"east"}))
    desired = desired_rbac(
        collect_grants([bind("ann", Role.EDITOR, on("one"))], "uid-one"),
        namespaces={"default"},
        clusters={"east"},
        kinds=(),
    )
    term.end()
    with pytest.raises(TermEnded):
        await writer.apply(desired, grant=True)
