"""Whether a caller may call a method: the options of the protos are applied, and callers must still be valid."""

from typing import Any

import pytest
from support.bindings import World, bind, on
from support.entrance import METHODS, NothingRevoked

from kairship.access import Identities, Role
from kairship.apiserver.auth.authorisation import MethodAuthoriser
from kairship.apiserver.auth.revocation import DirectoryRevocationCheck
from kairship.gen.kairship.internal.v1.directory_pb import FollowResponse, Identity
from kairship.rpc.calls import ANONYMOUS, Call, Caller
from kairship.rpc.errors import ApiError, InvalidArgument, NotFound, PermissionDenied, Unauthenticated, Unavailable

ALICE, BOB = Caller(id="alice", name="alice"), Caller(id="bob", name="bob")
IN_SESSION = Caller(id="alice", name="alice", session="s-1")


def a_call(caller: Caller, name: str) -> Call:
    return Call(request_id="r", caller=caller, method=METHODS[name], deadline=0.0)


def refused(authoriser: MethodAuthoriser, caller: Caller, name: str, /, **fields: Any) -> type[ApiError] | None:
    call = a_call(caller, name)
    try:
        authoriser.authorise(call, call.method.request(**fields))
    except ApiError as error:
        return type(error)
    return None


def test_the_options_of_the_protos_are_applied() -> None:
    world = World(bind("alice", Role.VIEWER, on("east", "shop")), bind("alice", Role.VIEWER, on(workspace="7")))
    authoriser = MethodAuthoriser(world.authoriser, NothingRevoked())

    def refusal(caller: Caller, name: str, /, **fields: Any) -> type[ApiError] | None:
        return refused(authoriser, caller, name, **fields)

    assert refusal(ALICE, "Apps.GetDeployment", instance="east", namespace="shop", name="web") is None
    assert refusal(ALICE, "Apps.GetDeployment", instance="east", name="web") is InvalidArgument
    assert refusal(ALICE, "Instance.GetInstance", name="east") is PermissionDenied
    assert refusal(ALICE, "Instance.GetInstance", name="west") is NotFound
    assert refusal(BOB, "Instance.ListInstances") is None  # and shows nothing
    assert refusal(ALICE, "Workspaces.GetWorkspace", workspace="7") is None
    assert refusal(ALICE, "Workspaces.GetWorkspace", workspace="8") is NotFound
    assert refusal(ALICE, "CurrentUser.GetCurrentUser") is None


def test_without_a_caller_only_public_methods_are_allowed() -> None:
    world = World()
    authoriser = MethodAuthoriser(world.authoriser, NothingRevoked())
    assert refused(authoriser, ANONYMOUS, "Sessions.Login") is None
    assert refused(authoriser, ANONYMOUS, "CurrentUser.GetCurrentUser") is PermissionDenied
    assert refused(authoriser, ANONYMOUS, "Instance.ListInstances") is PermissionDenied


def test_without_contact_to_the_directory_what_is_delicate_is_refused_at_once() -> None:
    world = World(bind("alice", Role.ADMIN, on("east")))
    identities = Identities(world.clock)
    authoriser = MethodAuthoriser(world.authoriser, DirectoryRevocationCheck(identities))

    def read() -> type[ApiError] | None:
        return refused(authoriser, ALICE, "Instance.GetInstance", name="east")

    def delete() -> type[ApiError] | None:
        return refused(authoriser, ALICE, "Apps.DeleteDeployment", instance="east", namespace="shop", name="web")

    assert read() is Unavailable
    identities.apply(FollowResponse(complete=True, identities=[Identity(id="alice", name="alice")]))
    assert (read(), delete()) == (None, None)
    identities.mark_disconnected()
    assert (read(), delete()) == (None, Unavailable)
    world.clock.pass_time(61)
    assert read() is Unavailable
    assert refused(authoriser, ANONYMOUS, "Sessions.Login") is None


@pytest.mark.parametrize("ended", [{"gone_users": ["alice"]}, {"ended_sessions": ["s-1"]}])
def test_a_stream_ends_with_its_user_or_session(ended: dict[str, Any]) -> None:
    world = World(bind("alice", Role.ADMIN, on("east")))
    identities = Identities(world.clock)
    identities.apply(FollowResponse(complete=True, identities=[Identity(id="alice", name="alice")]))
    authoriser = MethodAuthoriser(world.authoriser, DirectoryRevocationCheck(identities))
    call = a_call(IN_SESSION, "Apps.WatchDeployments")
    request = call.method.request(instance="east")
    authoriser.authorise(call, request)
    objection = authoriser.objection(call, request)
    assert objection() is None
    identities.apply(FollowResponse(complete=True, **ended))
    assert isinstance(objection(), Unauthenticated)
