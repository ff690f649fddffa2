"""A follower of the directory knows all identities, and learns of every revocation with the next page of changes."""

import pytest
import sqlalchemy as sa

from kairship.ghippo.audit import AuditLog, Entry
from kairship.ghippo.cleanup import Cleanup
from kairship.ghippo.database import Database
from kairship.ghippo.database.schema import identity_changes
from kairship.ghippo.identity import access_tokens, directory, groups, sessions, users
from kairship.ghippo.identity.directory import Gone, Identity, KeysChanged, Token
from kairship.ghippo.identity.sign_in import SignIn

from .conftest import Ask, Time


class Follower:
    """The identities of an entrance."""

    def __init__(self, ask: Ask, time: Time) -> None:
        self._ask = ask
        self._time = time
        self.users: dict[str, Identity] = {}
        self.tokens: dict[str, Token] = {}
        self.ended: list[str] = []
        self.keys_changed = 0
        self.revision = -1
        self.snapshots = 0

    async def look(self) -> None:
        while True:
            page = None
            if self.revision >= 0:
                page = await self._ask.timed(directory.changes, after=self.revision)
            if page is None:
                await self._snapshot()
                continue
            for event in page.events:
                self._take(event)
            self.revision = page.revision
            if not page.events:
                return

    async def _snapshot(self) -> None:
        self.users, self.tokens = {}, {}
        self.revision = await self._ask(directory.revision)
        self.snapshots += 1
        position: directory.Position | None = directory.Position()
        while position is not None:
            events, position = await self._ask.timed(directory.snapshot, after=position)
            for event in events:
                self._take(event)

    def _take(self, event: directory.Event) -> None:
        match event:
            case Identity():
                self.users[event.id] = event
            case Token():
                self.tokens[event.id] = event
            case Gone("user", name):
                self.users.pop(name, None)
            case Gone("token", name):
                self.tokens.pop(name, None)
            case Gone(_, name):
                self.ended.append(name)
            case KeysChanged():
                self.keys_changed += 1


@pytest.fixture
def follower(ask: Ask, time: Time) -> Follower:
    return Follower(ask, time)


async def test_users_groups_and_tokens_are_followed(ask: Ask, follower: Follower) -> None:
    await follower.look()
    ann = await ask.timed(users.create, name="ann")
    devs = await ask.timed(groups.create, name="devs")
    await ask.timed(groups.add_member, devs, ann)
    issued = await ask.timed(access_tokens.issue, ann, name="ci", granted=["kairship.pods.get"], days=1)
    await follower.look()
    assert follower.users == {ann: Identity(id=ann, name="ann", groups=(devs,))}
    assert follower.tokens[issued.id].limited_to == frozenset({"kairship.pods.get"})
    await ask.timed(groups.remove_member, devs, ann)
    await ask.timed(access_tokens.revoke, ann, issued.id)
    await follower.look()
    assert follower.users[ann].groups == ()
    assert follower.tokens == {}
    await ask.timed(groups.sync_with_claims, ann, provider="corp", names=["ops"])
    await follower.look()
    assert len(follower.users[ann].groups) == 1
    [ops] = follower.users[ann].groups
    await ask.timed(groups.delete, ops)
    await follower.look()
    assert follower.users[ann].groups == ()
    assert follower.snapshots == 1


@pytest.mark.parametrize("end", ["disable", "delete"])
async def test_whoever_is_disabled_or_deleted_is_gone_with_everything(ask: Ask, follower: Follower, end: str) -> None:
    ann = await ask.timed(users.create, name="ann")
    opened = await ask.timed(sessions.begin, ann, address="", agent="")
    await ask.timed(access_tokens.issue, ann, name="ci", granted=[], days=1)
    await follower.look()
    assert len(follower.tokens) == 1
    if end == "disable":
        await ask.timed(users.update, ann, display_name="", email="", disabled=True)
    else:
        await ask.timed(users.delete, ann)
    await follower.look()
    assert (follower.users, follower.tokens, follower.ended) == ({}, {}, [opened.id])


async def test_sessions_that_end_are_told_of(ask: Ask, follower: Follower, time: Time) -> None:
    ann = await ask.timed(users.create, name="ann")
    first = await ask.timed(sessions.begin, ann, address="", agent="")
    second = await ask.timed(sessions.begin, ann, address="", agent="")
    await follower.look()
    await ask.timed(sessions.end, ann, first.id)
    await ask.timed(sessions.refresh, second.refresh_token)
    time.pass_(sessions.GRACE + 1)
    await ask.timed(sessions.refresh, second.refresh_token)  # it was used before, so it was stolen
    await follower.look()
    assert follower.ended == [first.id, second.id]


async def test_new_keys_are_told_of(follower: Follower, sign_in: SignIn, ask: Ask, time: Time) -> None:
    await follower.look()
    await sign_in.public_keys()
    await follower.look()
    assert follower.keys_changed == 1


async def test_a_change_that_is_rolled_back_is_not_told(database: Database, follower: Follower, time: Time) -> None:
    await follower.look()

    def work(connection: sa.Connection) -> None:
        users.create(connection, name="ann", at=time())
        raise RuntimeError

    with pytest.raises(RuntimeError):
        await database.write(work)
    await follower.look()
    assert follower.users == {}


async def test_who_was_away_for_too_long_takes_a_new_snapshot(
    database: Database, audit: AuditLog, ask: Ask, follower: Follower, time: Time
) -> None:
    await follower.look()
    ann = await ask.timed(users.create, name="ann")
    time.pass_(directory.CHANGES_KEPT + 1)
    await Cleanup(database, audit, wall=time).run_once()
    assert await ask.rows(sa.select(identity_changes)) == []
    await follower.look()
    assert (list(follower.users), follower.snapshots) == ([ann], 2)
    await follower.look()
    assert follower.snapshots == 2
    follower.revision = 10**9  # as after the database was restored to an earlier time
    await follower.look()
    assert follower.snapshots == 3


async def test_upkeep_lets_old_entries_of_the_audit_go(
    database: Database, audit: AuditLog, ask: Ask, time: Time
) -> None:
    old, new = Entry(at=time() - 31 * 86400, action="a"), Entry(at=time(), action="b")
    await ask(audit.append, [old, new])
    await Cleanup(database, audit, audit_days=30, wall=time).run_once()
    found = await ask(audit.verify)
    assert (found.entries, found.broken_at) == (1, None)
