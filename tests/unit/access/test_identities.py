"""Identities follow the directory: a snapshot first, then changes; listeners learn of every revocation."""

import pytest
from support.reconcile import FakeClock

from kairship.access import Identities, Revocation
from kairship.gen.kairship.internal.v1.directory_pb import FollowResponse, Identity, Token


class Followed:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.at = 1_000.0
        self.identities = Identities(self.clock, wall=lambda: self.at)
        self.revoked: list[tuple[str, str]] = []
        self.identities.on_revocation(self._record)

    def _record(self, ended: Revocation) -> None:
        self.revoked.append((ended.kind, ended.id))

    def receive(self, *users: str, tokens: dict[str, str] | None = None, **more: object) -> None:
        """Users as name or name:group,group; tokens by their owners."""
        found = FollowResponse(complete=True)
        for each in users:
            name, _, groups = each.partition(":")
            found.identities.append(Identity(id=name, name=name, groups=groups.split(",") if groups else []))
        for token, owner in (tokens or {}).items():
            found.tokens.append(Token(id=token, hash=token.encode(), user=owner, expires_at=2_000))
        for name, value in more.items():
            setattr(found, name, value)
        self.identities.apply(found)


@pytest.fixture
def followed() -> Followed:
    return Followed()


def test_a_snapshot_and_then_changes(followed: Followed) -> None:
    followed.receive("ann:a,b", "bob", tokens={"t-1": "ann"}, reset=True, revision=7)
    assert followed.identities.revision == 7
    ann, token = followed.identities.user("ann"), followed.identities.token(b"t-1")
    assert ann is not None
    assert token is not None
    assert (ann.groups, token.user, token.limited_to) == (("a", "b"), "ann", None)
    followed.receive("ann:a,b,c", revision=8)
    assert followed.revoked == []  # a gained group revokes nothing
    followed.receive("ann:a", revision=9)
    followed.receive(gone_users=["bob"], gone_tokens=["t-1"], ended_sessions=["s-1"], revision=10)
    assert followed.revoked == [("user", "ann"), ("session", "s-1"), ("user", "bob"), ("token", "t-1")]
    assert followed.identities.user("bob") is None
    assert followed.identities.token(b"t-1") is None
    assert followed.identities.is_revoked("s-1")


def test_a_new_snapshot_reports_what_was_revoked_while_disconnected(followed: Followed) -> None:
    followed.receive("ann:a,b", "bob", "eve:a", tokens={"t-1": "ann", "t-2": "eve"}, reset=True)
    followed.identities.mark_disconnected()
    followed.receive("ann:a", reset=True, complete=False)
    assert followed.identities.user("bob") is not None  # the old snapshot counts until the new one is complete
    followed.receive("eve:a", "new", tokens={"t-2": "eve"})
    assert sorted(followed.revoked) == [("token", "t-1"), ("user", "ann"), ("user", "bob")]
    assert followed.identities.user("bob") is None
    assert followed.identities.user("new") is not None


def test_a_snapshot_that_breaks_off_changes_nothing(followed: Followed) -> None:
    followed.receive("ann", reset=True)
    followed.receive("bob", reset=True, complete=False)
    followed.identities.mark_disconnected()
    assert followed.identities.user("ann") is not None
    assert followed.identities.user("bob") is None
    followed.receive("eve")
    assert followed.identities.user("ann") is not None


def test_what_ends_while_it_is_looked_up_stays_ended(followed: Followed) -> None:
    followed.receive("ann", "bob", reset=True)
    token, late = (Token(id=each, hash=each.encode(), user="ann", expires_at=2_000) for each in ("t-1", "t-2"))
    followed.receive(gone_tokens=["t-1"])
    followed.identities.add(token, Identity(id="ann", name="ann"))
    assert followed.identities.token(b"t-1") is None
    followed.receive(gone_users=["ann"])
    followed.identities.add(late, Identity(id="ann", name="ann"))
    assert followed.identities.user("ann") is None
    assert followed.identities.token(b"t-2") is None


def test_a_user_deleted_while_disconnected_is_known_to_be_gone(followed: Followed) -> None:
    followed.receive("ann", "bob", reset=True)
    followed.identities.mark_disconnected()
    followed.receive("bob", reset=True)
    assert followed.identities.is_revoked("ann")
    assert not followed.identities.is_revoked("bob")


def test_a_token_that_expires_ends(followed: Followed) -> None:
    followed.receive("ann", tokens={"t-1": "ann"}, reset=True)
    followed.at = 2_000.0
    assert followed.identities.token(b"t-1") is None
    followed.receive()  # the directory sends something every few seconds
    assert followed.revoked == [("token", "t-1")]


def test_it_says_when_it_is_not_current(followed: Followed) -> None:
    trusts = followed.identities.freshness.suffices
    assert not trusts(delicate=False)
    followed.receive("ann", reset=True)
    assert trusts(delicate=True)
    followed.identities.mark_disconnected()
    assert not trusts(delicate=True)
    assert trusts(delicate=False)
    followed.clock.pass_time(61.0)
    assert not trusts(delicate=False)
    followed.receive()
    assert trusts(delicate=True)


def test_ended_sessions_are_forgotten_when_no_token_of_theirs_can_be_good(followed: Followed) -> None:
    followed.receive(reset=True, ended_sessions=["s-1"])
    followed.clock.pass_time(899.0)
    followed.receive()
    assert followed.identities.is_revoked("s-1")
    followed.clock.pass_time(2.0)
    followed.receive()
    assert not followed.identities.is_revoked("s-1")
