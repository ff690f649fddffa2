"""The internal service Directory: streams identities to entrances, which authenticate callers from memory.

It also tells the sequence of every binding. Bindings themselves are delivered by webhooks; an entrance learns here that
a delivery is missing.

A follower costs two small queries every half second, and two after every write of this replica. Writes of other
replicas are seen within that half second.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa
from protobuf.wkt import Empty

from kairship.gen.kairship.internal.v1 import directory_pb as pb
from kairship.ghippo.database import Database
from kairship.ghippo.errors import InvalidArgument
from kairship.ghippo.identifiers import Now, now
from kairship.ghippo.identity import access_tokens, directory
from kairship.ghippo.identity.directory import Event, Gone, Identity, KeysChanged, Position, Token
from kairship.ghippo.identity.sign_in import SignIn
from kairship.ghippo.tenancy import effective
from kairship.process.change_notifier import wait_at_most
from kairship.reconcile import Clock, SystemClock
from kairship.rpc.calls import Call

POLL_INTERVAL = 0.5
KEEPALIVE_EVERY = 2.0
"""Followers take a longer silence for a broken connection."""
_MAX_USES = 1000
_MAX_BINDINGS = 500
"""Bindings in one reply."""


class Directory:
    def __init__(self, database: Database, sign_in: SignIn, *, wall: Now = now, clock: Clock | None = None) -> None:
        self._database = database
        self._sign_in = sign_in
        self._now = wall
        self._clock = clock or SystemClock()
        self._ended = False

    def end(self) -> None:
        """Ends the streams of all followers, which would never end. Followers reconnect to another replica."""
        self._ended = True
        self._database.changes.notify()

    async def follow(self, request: pb.FollowRequest, call: Call) -> AsyncIterator[pb.FollowResponse]:
        revision, sequence, sent_at = request.revision, request.bindings_sequence, self._clock.now()
        # Taken before each query: a write during the query must wake this loop again.
        change = self._database.changes.next_change()
        page = await self._changes(revision) if revision else None
        keys = await self._keys()
        while not self._ended:
            if page is None:
                async for reply in self._snapshot(keys):
                    revision = reply.revision
                    yield reply
                keys, sent_at = "", self._clock.now()
            elif page.events or keys or self._clock.now() - sent_at >= KEEPALIVE_EVERY:
                if any(isinstance(event, KeysChanged) for event in page.events):
                    keys = await self._keys()
                revision = page.revision
                yield _reply(page.events, keys=keys, complete=True, revision=revision)
                keys, sent_at = "", self._clock.now()
            states = await self._binding_states(sequence)
            if states:
                sequence = states[-1].sequence
                yield pb.FollowResponse(
                    complete=True,
                    revision=revision,
                    bindings=[pb.BindingState(name=state.name, sequence=state.sequence) for state in states],
                    bindings_sequence=sequence,
                )
            if (page is None or not page.events) and len(states) < _MAX_BINDINGS:
                await wait_at_most(change, POLL_INTERVAL)
            change = self._database.changes.next_change()
            page = await self._changes(revision)

    async def look_up_token(self, request: pb.LookUpTokenRequest, call: Call) -> pb.LookUpTokenResponse:
        def work(connection: sa.Connection) -> list[Event]:
            row = access_tokens.find(connection, request.hash, at=self._now())
            return [] if row is None else directory.token_with_owner(connection, row, at=self._now())

        found = _reply(await self._database.read(work))
        if not found.tokens or not found.identities:
            return pb.LookUpTokenResponse()
        return pb.LookUpTokenResponse(token=found.tokens[0], owner=found.identities[0])

    async def issue_instance_token(
        self, request: pb.IssueInstanceTokenRequest, call: Call
    ) -> pb.IssueInstanceTokenResponse:
        issued = await self._database.write(
            lambda connection: access_tokens.issue_for_instance(
                connection,
                request.user,
                instance=request.instance,
                name=request.name,
                seconds=request.seconds,
                asked_with=request.asked_with,
                at=self._now(),
            )
        )
        return pb.IssueInstanceTokenResponse(id=issued.id, token=issued.token, expires_at=issued.expires_at)

    async def note_token_uses(self, request: pb.NoteTokenUsesRequest, call: Call) -> Empty:
        if len(request.uses) > _MAX_USES:
            raise InvalidArgument(f"a request has at most {_MAX_USES} uses; send fewer at a time", field="uses")
        latest = self._now()
        uses = {use.id: min(use.at, latest) for use in request.uses}
        await self._database.write(lambda connection: access_tokens.record_uses(connection, uses))
        return Empty()

    async def _changes(self, after: int) -> directory.Page | None:
        return await self._database.read(lambda connection: directory.changes(connection, after=after, at=self._now()))

    async def _binding_states(self, after: int) -> Sequence[sa.Row[Any]]:
        return await self._database.read(
            lambda connection: effective.states_after(connection, after, limit=_MAX_BINDINGS)
        )

    async def _snapshot(self, keys: str) -> AsyncIterator[pb.FollowResponse]:
        revision = await self._database.read(directory.revision)
        yield pb.FollowResponse(reset=True, keys=keys)
        position: Position | None = Position()
        while position is not None:
            after = position
            events, position = await self._database.read(
                lambda connection, after=after: directory.snapshot(connection, after=after, at=self._now())  # type: ignore[misc]
            )
            yield _reply(events, complete=position is None, revision=revision)

    async def _keys(self) -> str:
        return msgspec.json.encode(await self._sign_in.public_keys()).decode()


def _reply(events: Iterable[Event], *, keys: str = "", complete: bool = False, revision: int = 0) -> pb.FollowResponse:
    reply = pb.FollowResponse(keys=keys, complete=complete, revision=revision)
    gone = {"user": reply.gone_users, "token": reply.gone_tokens, "session": reply.ended_sessions}
    for event in events:
        match event:
            case Identity():
                reply.identities.append(pb.Identity(id=event.id, name=event.name, groups=list(event.groups)))
            case Token():
                reply.tokens.append(
                    pb.Token(
                        id=event.id,
                        hash=event.hash,
                        user=event.user,
                        limited_to=sorted(event.limited_to or ()),
                        expires_at=event.expires_at,
                        instance=event.instance,
                    )
                )
            case Gone(kind, identifier):
                gone[kind].append(identifier)
            case KeysChanged():
                pass  # sent with the keys themselves
    return reply
