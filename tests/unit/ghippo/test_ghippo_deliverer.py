"""Deliveries to a receiver that is down, slow, forgetful or redirects: no binding is lost or sent elsewhere."""

import asyncio
import contextlib
import time as wall
from collections.abc import AsyncIterator, Callable

import pytest
import sqlalchemy as sa
from aiohttp import web
from aiohttp.test_utils import TestServer
from support.waiting import eventually

from kairship.access import Role
from kairship.access.delivery.protocol import (
    MAX_BYTES,
    Acknowledgement,
    BindingChanges,
    DeliveryRefusedError,
    Receiver,
    RejectedBinding,
    SnapshotPage,
    encode,
)
from kairship.ghippo.audit import AuditLog, Filter
from kairship.ghippo.cleanup import TOMBSTONES_KEPT, Cleanup
from kairship.ghippo.database import Database, schema
from kairship.ghippo.delivery import rejections, webhooks
from kairship.ghippo.delivery.deliverer import Deliverer
from kairship.ghippo.errors import AlreadyExists, FailedPrecondition, InvalidArgument, PermissionDenied
from kairship.ghippo.identity import groups, users
from kairship.ghippo.sealing import Sealer
from kairship.ghippo.tenancy import bindings, registered_instances, roles
from kairship.ghippo.tenancy.bindings import Target
from kairship.ghippo.urls import check_url
from kairship.kube import AddressRule
from kairship.reconcile import Backoff
from kairship.rpc.calls import Caller

from .conftest import Ask, Time

PATIENCE = 120.0
HOOK = webhooks.PLANE
SECRET = "the-secret-of-the-plane"
LOOPBACK = AddressRule.allowing(["127.0.0.0/8", "::1"])


class Stored:
    """A receiver as another product would write it: `Receiver`, and a dictionary of stored bindings."""

    def __init__(self) -> None:
        self.receiver = Receiver()
        self.bindings: dict[str, tuple[int, bool]] = {}
        self.answers: list[int] = []
        self.kinds: list[str] = []
        self.refused = 0
        self.unfit: set[str] = set()
        """The names of bindings that it can never store."""
        self.news = asyncio.Condition()

    async def take(self, request: web.Request) -> web.Response:
        try:
            delivery = self.receiver.read(request.headers, await request.read(), at=wall.time())
        except DeliveryRefusedError:
            self.refused += 1
            return web.Response(status=401)
        status = self.answers.pop(0) if self.answers else 204
        async with self.news:
            self.kinds.append(type(delivery).__name__)
            if status < 300 or status == 599:  # 599: the delivery is stored, but its acknowledgement is lost
                self.store(delivery)
            self.news.notify_all()
            refused = tuple(
                RejectedBinding(name=each.name, sequence=each.spec.sequence, reason="it does not fit")
                for each in delivery.bindings
                if each.name in self.unfit and not each.spec.revoked
            )
        if refused and status == 204:
            return web.Response(body=encode(Acknowledgement(refused)))
        return web.Response(status=status, headers={"Location": "http://127.0.0.1:1/"} if status == 302 else None)

    def store(self, delivery: BindingChanges | SnapshotPage) -> None:
        for binding in delivery.bindings:
            known = self.bindings.get(binding.name)
            if binding.name in self.unfit and not binding.spec.revoked:
                continue
            if known is None or known[0] < binding.spec.sequence:
                self.bindings[binding.name] = (binding.spec.sequence, binding.spec.revoked)
        if isinstance(delivery, SnapshotPage):
            for name, (sequence, _) in list(self.bindings.items()):
                if delivery.is_gone(name, sequence):
                    del self.bindings[name]

    @property
    def live(self) -> set[str]:
        return {name for name, (_, revoked) in self.bindings.items() if not revoked}

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE), self.news:
            await self.news.wait_for(condition)


@pytest.fixture
async def stored() -> Stored:
    return Stored()


@pytest.fixture
async def server(stored: Stored) -> AsyncIterator[TestServer]:
    app = web.Application()
    app.router.add_post("/bindings", stored.take)
    server = TestServer(app)
    await server.start_server()
    yield server
    await server.close()


@contextlib.asynccontextmanager
async def delivering(
    database: Database, sealer: Sealer, *, addresses: AddressRule = LOOPBACK, own_url: str | None = None
) -> AsyncIterator[Deliverer]:
    deliverer = Deliverer(
        database, sealer, AuditLog(sealer), addresses=addresses, own_url=own_url, backoff=Backoff(0.02, 0.1)
    )
    running = asyncio.ensure_future(deliverer.run())
    try:
        yield deliverer
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


@pytest.fixture
async def ann(ask: Ask) -> str:
    await ask.timed(registered_instances.register, name="east", uid="uid-east")
    return await ask.timed(users.create, name="ann")


async def give(ask: Ask, user: str, namespace: str) -> str:
    target = Target(kind="Resource", id="uid-east", namespace=namespace)
    return await ask.timed(bindings.create, subject_kind="User", subject_id=user, role="viewer", target=target)


async def names_of(ask: Ask, binding: str) -> list[str]:
    """The name by which receivers know the binding."""
    table = schema.effective_bindings
    query = sa.select(table.c.name).where(table.c.binding_id == binding)
    return list(await ask(lambda connection: connection.execute(query).scalars().all()))


async def reader(ask: Ask) -> Caller:
    """A Platform Admin, who may read all bindings."""
    known = await ask(users.find_by_name, "root")
    if known is not None:
        return Caller(id=known.id, name="")
    root = await ask.timed(users.create, name="root")
    admin = Role.PLATFORM_ADMIN.id
    await ask.timed(bindings.create, subject_kind="User", subject_id=root, role=admin, target=bindings.PLATFORM)
    return Caller(id=root, name="")


async def subscribe(ask: Ask, sealer: Sealer, stored: Stored, url: str) -> None:
    """Sets up the webhook of the plane itself, which is sent everything."""
    stored.receiver = Receiver(SECRET)
    await ask(webhooks.ensure_plane, sealer, url=url, secret=SECRET)


async def test_changes_arrive_and_withdrawals_too(
    database: Database, sealer: Sealer, ask: Ask, ann: str, stored: Stored, server: TestServer
) -> None:
    first = await give(ask, ann, "web")
    await subscribe(ask, sealer, stored, str(server.make_url("/bindings")))
    async with delivering(database, sealer):
        await stored.until(lambda: len(stored.live) == 1)
        await give(ask, ann, "db")
        await stored.until(lambda: len(stored.live) == 2)
        await ask.timed(bindings.delete, first)
        await stored.until(lambda: len(stored.live) == 1)
        assert stored.refused == 0


async def test_a_receiver_that_fails_gets_it_again_in_order(
    database: Database, sealer: Sealer, ask: Ask, ann: str, stored: Stored, server: TestServer
) -> None:
    """503 and a redirect mean that nothing was stored; 599 stands for a lost acknowledgement."""
    stored.answers = [503, 302, 599, 599]
    await give(ask, ann, "web")
    await subscribe(ask, sealer, stored, str(server.make_url("/bindings")))
    async with delivering(database, sealer):
        await stored.until(lambda: not stored.answers and "SnapshotPage" in stored.kinds)
    assert stored.kinds[:4] == ["BindingChanges"] * 4
    [webhook] = await ask(webhooks.find)
    assert (webhook.pending, webhook.problem) == (0, "")


async def test_what_can_never_be_stored_is_set_aside_and_told(
    database: Database, sealer: Sealer, audit: AuditLog, ask: Ask, ann: str, stored: Stored, server: TestServer
) -> None:
    unfit, other = await give(ask, ann, "web"), await give(ask, ann, "db")
    [name] = await names_of(ask, unfit)
    stored.unfit = {name}
    await subscribe(ask, sealer, stored, str(server.make_url("/bindings")))

    async def recorded() -> tuple[str, int, int]:
        entries = await ask(audit.find, Filter(action=rejections.ACTION))
        return await ask(rejections.problem_of, unfit), (await ask(webhooks.get, HOOK)).refused, len(entries)

    async def sent_again() -> None:
        seen = stored.kinds.count("SnapshotPage")
        await ask(lambda connection: connection.execute(sa.update(schema.webhooks).values(reconciled_at=0)))
        await stored.until(lambda: stored.kinds.count("SnapshotPage") > seen)

        async def settled() -> bool:
            return bool((await ask(webhooks.get, HOOK)).reconciled_at)

        await eventually(settled, "the answer is settled")

    async with delivering(database, sealer):
        await stored.until(lambda: len(stored.live) == 1 and "SnapshotPage" in stored.kinds)
        later = await give(ask, ann, "cache")
        await stored.until(lambda: len(stored.live) == 2)  # it does not hold up later bindings
        await ask.timed(bindings.delete, other)
        await stored.until(lambda: len(stored.live) == 1)
        assert await recorded() == (f"{HOOK} cannot store it: it does not fit", 1, 1)
        assert await ask(rejections.problem_of, later) == ""
        assert (await ask(webhooks.get, HOOK)).problem == ""
        await sent_again()
        assert await recorded() == (
            f"{HOOK} cannot store it: it does not fit",
            1,
            1,
        )  # nothing new: it is recorded once
        stored.unfit = set()
        await sent_again()
        assert name in stored.live
        assert await recorded() == ("", 0, 1)


async def test_a_refused_binding_that_is_withdrawn_is_no_problem_any_more(
    database: Database, sealer: Sealer, ask: Ask, ann: str, stored: Stored, server: TestServer
) -> None:
    unfit = await give(ask, ann, "web")
    stored.unfit = set(await names_of(ask, unfit))
    await subscribe(ask, sealer, stored, str(server.make_url("/bindings")))

    async def refused() -> bool:
        return bool((await ask(webhooks.get, HOOK)).refused)

    async def settled() -> bool:
        return not (await ask(webhooks.get, HOOK)).refused

    async with delivering(database, sealer):
        await eventually(refused, "it is set aside")
        await ask.timed(bindings.delete, unfit)
        await eventually(settled, "it is forgotten")
    assert stored.bindings


async def test_what_a_receiver_says_of_others_has_no_meaning(
    ask: Ask, audit: AuditLog, ann: str, sealer: Sealer
) -> None:
    """A receiver can reject only bindings that it was sent, and only in the state in which it was sent them."""
    await give(ask, ann, "web")
    await ask(webhooks.ensure_plane, sealer, url="https://example.com/", secret=SECRET)
    changes = await ask(webhooks.next_changes, HOOK)
    assert changes is not None
    [sent] = changes.bindings
    for name, sequence in (("b-other", sent.spec.sequence), (sent.name, 5)):
        invented = RejectedBinding(name=name, sequence=sequence, reason="x")
        new = await ask(rejections.record, audit, webhook=HOOK, delivery=changes, refused=[invented], at=1)
        assert new == []
    assert await ask(rejections.count, HOOK) == 0


async def test_deliveries_are_bounded_in_bytes_too(
    ask: Ask, ann: str, sealer: Sealer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few groups with very many members fill a delivery, and receivers accept no larger one."""
    await ask(webhooks.ensure_plane, sealer, url="https://example.com/", secret=SECRET)
    for number in range(5):
        await give(ask, ann, f"n{number}")
    whole = await ask(webhooks.next_changes, HOOK)
    assert whole is not None
    one = len(encode(whole)) // 5
    assert MAX_BYTES >= 2 * webhooks._MAX_SPEC_BYTES
    monkeypatch.setattr(webhooks, "_MAX_SPEC_BYTES", 2 * one)
    delivered, position = [], 0
    while changes := await ask(webhooks.next_changes, HOOK):
        assert 1 <= len(changes.bindings) <= 2
        delivered += [each.name for each in changes.bindings]
        position = changes.bindings[-1].spec.sequence
        await ask(webhooks.acknowledge, name=HOOK, sequence=position)
    assert len(set(delivered)) == 5
    page = await ask(webhooks.snapshot_page, HOOK, after="")
    assert page.upto == page.bindings[-1].name


async def test_a_receiver_that_is_down_loses_nothing_and_holds_up_no_other(
    database: Database, sealer: Sealer, ask: Ask, ann: str, stored: Stored, server: TestServer
) -> None:
    await ask(webhooks.create, sealer, name="dead", url="http://127.0.0.1:1/bindings", owner=await reader(ask))
    await subscribe(ask, sealer, stored, str(server.make_url("/bindings")))
    await give(ask, ann, "web")
    async with delivering(database, sealer):
        await stored.until(lambda: len(stored.live) == 2)

        async def problem_is_shown() -> bool:
            return "did not acknowledge" in (await ask(webhooks.get, "dead")).problem

        await eventually(problem_is_shown, "the problem is shown")
    assert (await ask(webhooks.get, "dead")).pending == 2


async def test_a_receiver_that_forgot_or_invented_is_made_whole(
    database: Database, sealer: Sealer, ask: Ask, ann: str, stored: Stored, server: TestServer
) -> None:
    for number in range(webhooks.MAX_BINDINGS // 40):
        await give(ask, ann, f"n{number}")
    await subscribe(ask, sealer, stored, str(server.make_url("/bindings")))
    async with delivering(database, sealer):
        await stored.until(lambda: stored.kinds.count("SnapshotPage") == 1)
    known = dict(stored.bindings)
    stored.bindings = {"b-0000-invented": (5, False), "b-zzzz": (5, False)}
    await ask(lambda connection: connection.execute(sa.update(schema.webhooks).values(reconciled_at=0)))
    async with delivering(database, sealer):
        await stored.until(lambda: stored.kinds.count("SnapshotPage") == 2)
    assert stored.bindings == known


async def test_everything_comes_in_pages_that_leave_no_gap(
    ask: Ask, ann: str, sealer: Sealer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "MAX_BINDINGS", 2)
    await ask(webhooks.ensure_plane, sealer, url="https://example.com/", secret=SECRET)
    for number in range(5):
        await give(ask, ann, f"n{number}")
    names: list[str] = []
    after: str | None = ""
    pages = 0
    while after is not None:
        page = await ask(webhooks.snapshot_page, HOOK, after=after)
        assert page.after == after
        names += [binding.name for binding in page.bindings]
        after, pages = page.upto, pages + 1
    assert names == sorted(names)
    assert (len(names), pages) == (5, 3)


async def test_nobody_changes_the_webhook_of_the_plane(ask: Ask, sealer: Sealer) -> None:
    root = await reader(ask)
    with pytest.raises(FailedPrecondition, match="own entrance"):  # nor takes its place
        await ask(webhooks.create, sealer, name=HOOK, url="https://example.com/", owner=root)
    await ask(webhooks.ensure_plane, sealer, url="https://example.com/", secret=SECRET)
    for url, disabled in (("https://example.com/", True), ("https://elsewhere.example.com/", False)):
        with pytest.raises(FailedPrecondition, match="own entrance"):
            await ask(webhooks.update, HOOK, owner=root, url=url, disabled=disabled)
    with pytest.raises(FailedPrecondition, match="own entrance"):
        await ask(webhooks.delete, HOOK)
    await ask(lambda connection: connection.execute(sa.update(schema.webhooks).values(disabled=True, owner="u-1")))
    await ask(webhooks.ensure_plane, sealer, url="https://example.com/", secret=SECRET)
    plane = await ask(webhooks.get, HOOK)
    assert (plane.url, plane.disabled, plane.owner) == ("https://example.com/", False, "")


async def test_a_webhook_is_sent_what_its_owner_may_read(
    database: Database, sealer: Sealer, ask: Ask, ann: str, stored: Stored, server: TestServer
) -> None:
    """At the moment of the delivery: whoever loses the right to read bindings is sent no more of them."""
    root, url = await reader(ask), str(server.make_url("/bindings"))
    await ask(roles.create, "hooks", display_name="", description="", granted=["ghippo.webhooks.create"])
    await ask.timed(bindings.create, subject_kind="User", subject_id=ann, role="hooks", target=bindings.PLATFORM)
    caller = Caller(id=ann, name="")
    with pytest.raises(PermissionDenied, match=webhooks.READ_BINDINGS):
        await ask(webhooks.create, sealer, name="hook", url=url, owner=caller)
    limited = Caller(id=root.id, name="", limited_to=frozenset({"ghippo.webhooks.create"}))
    with pytest.raises(PermissionDenied, match=webhooks.READ_BINDINGS):
        await ask(webhooks.create, sealer, name="hook", url=url, owner=limited)
    await ask(roles.create, "reader", display_name="", description="", granted=[webhooks.READ_BINDINGS])
    seeing = await ask.timed(
        bindings.create, subject_kind="User", subject_id=ann, role="reader", target=bindings.PLATFORM
    )
    team = await ask.timed(groups.create, name="team")
    await ask.timed(groups.add_member, team, ann)
    target = Target(kind="Resource", id="uid-east")
    of_team = await ask.timed(bindings.create, subject_kind="Group", subject_id=team, role="viewer", target=target)
    stored.receiver = Receiver(await ask(webhooks.create, sealer, name="hook", url=url, owner=caller))
    async with delivering(database, sealer):
        [name] = await names_of(ask, of_team)
        await stored.until(lambda: name in stored.live)
        page = await ask(webhooks.snapshot_page, "hook", after="")
        assert [each.spec.members for each in page.bindings if each.name == name] == [()]  # the owner sees no groups
        await ask.timed(bindings.delete, seeing)
        late = await give(ask, ann, "late")

        async def says_why() -> bool:
            return "may not read role bindings" in (await ask(webhooks.get, "hook")).problem

        await eventually(says_why, "the webhook says why nothing is delivered")
        await ask(webhooks.update, "hook", url=url, disabled=False, owner=root)
        [name] = await names_of(ask, late)
        await stored.until(lambda: name in stored.live)
        assert (await ask(webhooks.get, "hook")).owner == root.id


async def test_a_revocation_that_the_plane_has_not_got_is_kept(ask: Ask, sealer: Sealer, ann: str, time: Time) -> None:
    await ask(webhooks.ensure_plane, sealer, url="https://example.com/", secret=SECRET)
    await ask.timed(bindings.delete, await give(ask, ann, "web"))
    cleanup = Cleanup(ask.database, AuditLog(sealer), wall=lambda: time() + 2 * TOMBSTONES_KEPT)
    await cleanup.run_once()
    changes = await ask(webhooks.next_changes, HOOK)
    assert changes is not None
    await ask(webhooks.acknowledge, name=HOOK, sequence=changes.bindings[-1].spec.sequence)
    await cleanup.run_once()
    assert await ask.rows(sa.select(schema.effective_bindings)) == []


@pytest.mark.parametrize(
    "url",
    ["", "x", "http://example.com/", "ftp://example.com", "https://", "https://user:pw@example.com/", "https://[::1",
     "http://127.0.0.1.example.com/", "https://example.com/#x", "https://exa mple.com/", "https://example.com/\n",
     "file:///etc/passwd", "http://169.254.169.254/"],
)  # fmt: skip
def test_addresses_that_are_refused(url: str) -> None:
    with pytest.raises(InvalidArgument):
        check_url(url)


async def test_the_secret_is_sealed_and_a_name_is_there_once(ask: Ask, sealer: Sealer) -> None:
    secret = await ask(webhooks.create, sealer, name="hook", url="https://example.com/", owner=await reader(ask))
    row = await ask(webhooks.get, "hook")
    assert secret not in str(row)
    assert secret.encode() not in bytes(row.sealed_secret)
    with pytest.raises(AlreadyExists):
        await ask(webhooks.create, sealer, name="hook", url="https://example.com/", owner=await reader(ask))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_receivers_are_only_where_the_operator_allows_them(
    database: Database, sealer: Sealer, ask: Ask, ann: str, stored: Stored, server: TestServer, host: str
) -> None:
    """The plane's own webhook, which the operator has entered, is delivered to all the same."""
    refused_url = f"http://{host}:{server.port}/bindings"
    owner = await reader(ask)
    await ask(webhooks.create, sealer, name="user", url=refused_url, owner=owner)
    await ask(webhooks.create, sealer, name="closed", url="http://127.0.0.1:1/bindings", owner=owner)
    own_url = str(server.make_url("/bindings?own"))
    await subscribe(ask, sealer, stored, own_url)
    await give(ask, ann, "web")
    async with delivering(database, sealer, addresses=AddressRule(), own_url=own_url):
        await stored.until(lambda: len(stored.live) == 2)

        async def both_are_shown() -> bool:
            return all([(await ask(webhooks.get, name)).problem for name in ("user", "closed")])

        await eventually(both_are_shown, "the problems")
    rows = [await ask(webhooks.get, name) for name in ("user", "closed")]
    assert [row.pending for row in rows] == [2, 2]
    # Whether the address is refused or the port is closed makes no difference to what is shown.
    assert rows[0].problem == rows[1].problem
