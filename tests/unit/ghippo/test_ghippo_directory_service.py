"""The directory service: entrances get a snapshot in pages, then every change at once, until the stream ends."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any, cast

import pytest
import sqlalchemy as sa

from kairship.access import Identities
from kairship.gen.kairship.internal.v1.audit_pb import AppendRequest, Event
from kairship.gen.kairship.internal.v1.directory_pb import (
    FollowRequest,
    FollowResponse,
    IssueInstanceTokenRequest,
    LookUpTokenRequest,
    NoteTokenUsesRequest,
    TokenUse,
)
from kairship.ghippo.audit import AuditLog, Filter
from kairship.ghippo.database import Database, schema
from kairship.ghippo.errors import FailedPrecondition, InvalidArgument
from kairship.ghippo.identity import access_tokens, directory, groups, sessions, users
from kairship.ghippo.identity.sign_in import SignIn
from kairship.ghippo.services import directory as service
from kairship.ghippo.services.audit_trail import AuditTrail
from kairship.ghippo.services.directory import Directory
from kairship.ghippo.tenancy import bindings, registered_instances
from kairship.reconcile import SystemClock
from kairship.rpc.calls import Call

from .conftest import Ask, Time

CALL = cast("Call", None)
"""The service does not use the call."""


@pytest.fixture
def served(database: Database, sign_in: SignIn, time: Time) -> Directory:
    return Directory(database, sign_in, wall=time)


class Entrance:
    def __init__(self, served: Directory, time: Time) -> None:
        self.identities = Identities(SystemClock(), wall=time)
        self.replies: list[FollowResponse] = []
        self._served = served
        self._heard = asyncio.Condition()

    async def follow(self) -> None:
        request = FollowRequest(revision=self.identities.revision)
        async with aclosing(cast("Any", self._served.follow(request, CALL))) as replies:
            async for reply in replies:
                async with self._heard:
                    self.replies.append(reply)
                    self.identities.apply(reply)
                    self._heard.notify_all()

    async def until(self, condition: Any) -> None:
        async with asyncio.timeout(60), self._heard:
            await self._heard.wait_for(condition)


@asynccontextmanager
async def following(entrance: Entrance) -> AsyncIterator[None]:
    running = asyncio.create_task(entrance.follow())
    try:
        await entrance.until(lambda: entrance.identities.freshness.suffices(delicate=True))
        yield
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_everything_in_pages_and_then_changes_at_once(
    served: Directory, ask: Ask, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory, "_PAGE", 3)
    monkeypatch.setattr(service, "POLL_INTERVAL", 60.0)  # so that the write wakes the follower, not the poll
    people = [await ask.timed(users.create, name=f"user-{number}") for number in range(8)]
    tokens = [await ask.timed(access_tokens.issue, user, name="ci", granted=[], days=1) for user in people]
    entrance = Entrance(served, time)
    known = entrance.identities
    async with following(entrance):
        assert [reply.complete for reply in entrance.replies].count(True) == 1
        assert all(known.user(user) for user in people)
        assert all(known.token(hashlib.sha256(each.token.encode()).digest()) for each in tokens)
        assert known.verifier is not None
        devs = await ask.timed(groups.create, name="devs")
        await ask.timed(groups.add_member, devs, people[0])
        await entrance.until(lambda: known.user(people[0]) and known.user(people[0]).groups == (devs,))  # type: ignore[union-attr]
        opened = await ask.timed(sessions.begin, people[1], address="", agent="")
        await ask.timed(users.update, people[1], display_name="", email="", disabled=True)
        await entrance.until(lambda: known.user(people[1]) is None and known.is_revoked(opened.id))


async def test_a_token_of_an_instance_is_told_with_it_and_goes_with_what_asked_for_it(
    served: Directory, ask: Ask, time: Time
) -> None:
    ann, bob = [await ask.timed(users.create, name=name) for name in ("ann", "bob")]
    parent = await ask.timed(access_tokens.issue, ann, name="ci", granted=["kairship.pods.get"], days=1)

    def wish(seconds: int, *, user: str = ann, asked_with: str = "") -> IssueInstanceTokenRequest:
        return IssueInstanceTokenRequest(
            user=user, instance="demo", name="kubeconfig", seconds=seconds, asked_with=asked_with
        )

    own = await served.issue_instance_token(wish(600), CALL)
    child = await served.issue_instance_token(wish(5 * 86400, asked_with=parent.id), CALL)
    assert own.expires_at == time() + 600
    assert child.expires_at == parent.expires_at
    for refused in (
        wish(600, user=bob, asked_with=parent.id),  # a token of another user
        wish(600, asked_with=child.id),  # a token that is for an instance itself
        wish(600, asked_with="t-gone"),
        wish(0),
    ):
        with pytest.raises((FailedPrecondition, InvalidArgument)):
            await served.issue_instance_token(refused, CALL)
    entrance = Entrance(served, time)
    known = entrance.identities
    hashes = [hashlib.sha256(each.token.encode()).digest() for each in (own, child)]
    async with following(entrance):
        found = [known.token(each) for each in hashes]
        assert [(each.instance, each.limited_to) for each in found if each] == [
            ("demo", None),
            ("demo", frozenset({"kairship.pods.get"})),
        ]
        await ask.timed(access_tokens.revoke, ann, parent.id)
        await entrance.until(lambda: known.token(hashes[1]) is None)
        assert known.token(hashes[0]) is not None


async def test_who_comes_back_goes_on_or_takes_everything(served: Directory, ask: Ask, time: Time) -> None:
    ann = await ask.timed(users.create, name="ann")
    entrance = Entrance(served, time)
    async with following(entrance):
        pass
    bob = await ask.timed(users.create, name="bob")
    entrance.replies.clear()
    entrance.identities.mark_disconnected()
    async with following(entrance):
        assert not any(reply.reset for reply in entrance.replies)
        assert entrance.identities.user(bob) is not None
    await ask.timed(users.delete, ann)
    time.pass_(directory.CHANGES_KEPT + 1)
    await ask(directory.delete_changes, before=time())
    entrance.replies.clear()
    entrance.identities.mark_disconnected()
    async with following(entrance):
        assert entrance.replies[0].reset
        assert entrance.identities.user(ann) is None


async def test_the_sequence_of_every_binding_is_told(
    served: Directory, ask: Ask, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "_MAX_BINDINGS", 2)
    monkeypatch.setattr(service, "POLL_INTERVAL", 60.0)  # so that the write wakes the follower, not the poll
    ann = await ask.timed(users.create, name="ann")
    await ask.timed(registered_instances.register, name="east", uid="uid-east")

    async def give(namespace: str) -> str:
        target = bindings.Target(kind="Resource", id="uid-east", namespace=namespace)
        return await ask.timed(bindings.create, subject_kind="User", subject_id=ann, role="viewer", target=target)

    async def current() -> dict[str, int]:
        return {row.name: row.sequence for row in await ask.rows(sa.select(schema.effective_bindings))}

    given = [await give(f"n{number}") for number in range(5)]
    entrance = Entrance(served, time)

    def told() -> dict[str, int]:
        return {each.name: each.sequence for reply in entrance.replies for each in reply.bindings}

    async with following(entrance):
        known = await current()
        await entrance.until(lambda: told() == known)
        await ask.timed(bindings.delete, given[0])
        revoked = await current()
        assert revoked != known
        await entrance.until(lambda: told() == revoked)
        assert entrance.replies[-1].bindings_sequence == max(revoked.values())


async def test_a_session_that_ended_before_the_snapshot(served: Directory, ask: Ask, time: Time) -> None:
    ann = await ask.timed(users.create, name="ann")
    old, new = [await ask.timed(sessions.begin, ann, address="", agent="") for _ in range(2)]
    await ask.timed(sessions.end, ann, old.id)
    time.pass_(directory.ENDED_SESSIONS_KEPT + 1)
    await ask.timed(sessions.end, ann, new.id)
    entrance = Entrance(served, time)
    async with following(entrance):
        assert entrance.identities.is_revoked(new.id)
        assert not entrance.identities.is_revoked(old.id)  # its tokens have expired


async def test_something_is_said_though_nothing_changes(
    served: Directory, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "POLL_INTERVAL", 0.01)
    monkeypatch.setattr(service, "KEEPALIVE_EVERY", 0.05)
    entrance = Entrance(served, time)
    async with following(entrance):
        await entrance.until(lambda: len(entrance.replies) > 5)
    assert not entrance.replies[-1].identities


async def test_streams_of_followers_end(served: Directory, time: Time) -> None:
    entrance = Entrance(served, time)
    running = asyncio.create_task(entrance.follow())
    await entrance.until(lambda: entrance.identities.freshness.suffices(delicate=True))
    served.end()
    await asyncio.wait_for(running, 5)


async def test_a_token_is_looked_up_and_its_use_noted(served: Directory, ask: Ask, time: Time) -> None:
    ann = await ask.timed(users.create, name="ann")
    issued = await ask.timed(access_tokens.issue, ann, name="ci", granted=["kairship.pods.get"], days=1)
    hash_ = hashlib.sha256(issued.token.encode()).digest()
    found = await served.look_up_token(LookUpTokenRequest(hash=hash_), CALL)
    assert found.token is not None
    assert found.owner is not None
    assert (found.token.user, found.token.limited_to, found.owner.name) == (ann, ["kairship.pods.get"], "ann")
    assert (await served.look_up_token(LookUpTokenRequest(hash=b"x" * 32), CALL)).token is None
    future = TokenUse(id=issued.id, at=time() + 9999)
    await served.note_token_uses(NoteTokenUsesRequest(uses=[future]), CALL)
    [row] = await ask.timed(access_tokens.of_user, ann)
    assert row.last_used_at == time()  # a use cannot be in the future
    with pytest.raises(InvalidArgument):
        await served.note_token_uses(NoteTokenUsesRequest(uses=[future] * 1001), CALL)


async def test_events_are_taken_once_and_all_of_them_or_none(
    database: Database, audit: AuditLog, ask: Ask, time: Time
) -> None:
    trail = AuditTrail(database, audit, clock=time)
    one, two = (Event(id=name, at=time(), action="kairship.pods.delete", outcome=2) for name in ("one", "two"))
    await trail.append(AppendRequest(events=[one]), CALL)
    await trail.append(AppendRequest(events=[one, two, two]), CALL)
    assert len(await ask(audit.find, Filter())) == 2
    with pytest.raises(InvalidArgument):
        await trail.append(AppendRequest(events=[Event(id="three", at=time()), Event(at=time())]), CALL)
    assert len(await ask(audit.find, Filter())) == 2
    assert (await ask(audit.verify)).broken_at is None
