"""Sign-in with a password, a refresh token, an access token and a device; and the lockout."""

import asyncio
import functools
import threading
from pathlib import Path

import pytest
import sqlalchemy as sa
from argon2 import PasswordHasher

from kairship.access.session_tokens import Claims, SessionTokenError, Verifier
from kairship.ghippo.audit import AuditLog, Filter
from kairship.ghippo.database import Database, schema
from kairship.ghippo.errors import (
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    Unauthenticated,
)
from kairship.ghippo.identifiers import hashed
from kairship.ghippo.identity import access_tokens, device_login, sessions, users
from kairship.ghippo.identity.first_run import create_admin, extend_token, remove_password_file_when_changed
from kairship.ghippo.identity.passwords import Passwords, check_policy
from kairship.ghippo.identity.sign_in import Origin, SignIn
from kairship.ghippo.identity.signing_keys import Signer
from kairship.process.start_error import StartError

from .conftest import Ask, Time

GOOD = "correct horse battery staple"
HERE = Origin("192.0.2.1", "test", "r-1")


@pytest.fixture
async def ann(ask: Ask, passwords: Passwords) -> str:
    return await ask.timed(users.create, name="ann", password_hash=await passwords.hash(GOOD))


async def claims_of(sign_in: SignIn, token: str, time: Time) -> Claims:
    return Verifier(await sign_in.public_keys()).verify(token, at=time())


async def test_a_session_begins_and_goes_on(sign_in: SignIn, ann: str, time: Time) -> None:
    first = await sign_in.with_password(" Ann ", GOOD, HERE)
    claims = await claims_of(sign_in, first.token, time)
    assert (claims.sub, claims.chg, claims.exp - claims.iat) == (ann, True, 300)
    time.pass_(299)
    second = await sign_in.with_refresh_token(first.refresh_token)
    assert (await claims_of(sign_in, second.token, time)).sid == claims.sid
    time.pass_(1)
    with pytest.raises(SessionTokenError, match="expired"):
        await claims_of(sign_in, first.token, time)


async def test_nothing_shows_what_was_handed_out(sign_in: SignIn, ann: str) -> None:
    signed = await sign_in.with_password("ann", GOOD, HERE)
    shown = f"{signed!r} {signed} {sign_in!r}"
    assert not any(secret in shown for secret in (signed.token, signed.refresh_token, signed.csrf_token))


@pytest.mark.parametrize("name", ["ann", "nobody", "", "x" * 400, "ann\0", "' OR 1=1 --", "\ud800"])
async def test_a_wrong_name_and_a_wrong_password_are_told_the_same(sign_in: SignIn, ann: str, name: str) -> None:
    with pytest.raises(Unauthenticated) as caught:
        await sign_in.with_password(name, "wrong password here", HERE)
    assert caught.value.message == "the name or the password is wrong"


async def test_a_wrong_name_costs_one_call_of_argon2_like_a_wrong_password(
    database: Database,
    audit: AuditLog,
    sign_in: SignIn,
    ann: str,
    ask: Ask,
    time: Time,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[str] = []
    verify = PasswordHasher.verify

    def counted(self: PasswordHasher, hash_: str, password: str) -> bool:
        calls.append(hash_)
        return verify(self, hash_, password)

    monkeypatch.setattr(PasswordHasher, "verify", counted)
    costs = []
    await ask.timed(users.create, name="without-password")
    for name in ("ann", "nobody", "without-password"):
        calls.clear()
        with pytest.raises(Unauthenticated):
            await sign_in.with_password(name, "wrong password here", HERE)
        parameters = {hash_.split("$")[3] for hash_ in calls}
        costs.append((len(calls), parameters))
    assert costs[0] == costs[1] == costs[2]
    assert costs[0][0] == 1


async def test_guessing_locks_the_account_and_says_for_how_long(sign_in: SignIn, ann: str, time: Time) -> None:
    for _ in range(5):
        with pytest.raises(Unauthenticated):
            await sign_in.with_password("ann", "wrong password here", HERE)
    with pytest.raises(ResourceExhausted) as caught:
        await sign_in.with_password("ann", GOOD, Origin("198.51.100.7"))
    assert caught.value.retry_after == 30
    time.pass_(30)
    await sign_in.with_password("ann", GOOD, HERE)
    for _ in range(4):  # the count has been reset
        with pytest.raises(Unauthenticated):
            await sign_in.with_password("ann", "wrong password here", HERE)
    await sign_in.with_password("ann", GOOD, HERE)


async def test_an_account_that_does_not_exist_is_locked_just_so(sign_in: SignIn) -> None:
    for _ in range(5):
        with pytest.raises(Unauthenticated):
            await sign_in.with_password("nobody", GOOD, HERE)
    with pytest.raises(ResourceExhausted):
        await sign_in.with_password("nobody", GOOD, HERE)


async def test_guessing_at_many_accounts_locks_the_address(sign_in: SignIn, ann: str) -> None:
    for number in range(30):
        with pytest.raises(Unauthenticated):
            await sign_in.with_password(f"user{number}", "wrong password here", HERE)
    with pytest.raises(ResourceExhausted):
        await sign_in.with_password("ann", GOOD, HERE)
    await sign_in.with_password("ann", GOOD, Origin("198.51.100.7"))


async def test_many_guesses_at_once_do_not_slip_through_together(sign_in: SignIn, ann: str) -> None:
    results = await asyncio.gather(
        *(sign_in.with_password("ann", f"wrong password {number}", HERE) for number in range(15)),
        return_exceptions=True,
    )
    assert sum(isinstance(result, Unauthenticated) for result in results) == 5
    assert sum(isinstance(result, ResourceExhausted) for result in results) == 10


async def test_a_flood_of_sign_ins_is_turned_away() -> None:
    passwords = Passwords(threads=1, waiting=2, hasher=PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
    gate = threading.Event()
    passwords._pool.submit(gate.wait)
    waiting = [asyncio.ensure_future(passwords.hash(GOOD)) for _ in range(3)]
    await asyncio.sleep(0)
    with pytest.raises(ResourceExhausted) as caught:
        await passwords.hash(GOOD)
    assert caught.value.retry_after
    gate.set()
    await asyncio.gather(*waiting)
    passwords.close()


async def test_a_refresh_token_that_comes_twice_ends_the_session(sign_in: SignIn, ann: str, time: Time) -> None:
    first = await sign_in.with_password("ann", GOOD, HERE)
    second = await sign_in.with_refresh_token(first.refresh_token)
    time.pass_(5)
    third = await sign_in.with_refresh_token(first.refresh_token)  # two tabs refresh at the same moment
    time.pass_(sessions.GRACE + 1)
    with pytest.raises(Unauthenticated):
        await sign_in.with_refresh_token(second.refresh_token)
    with pytest.raises(Unauthenticated):
        await sign_in.with_refresh_token(first.refresh_token)
    with pytest.raises(Unauthenticated):  # neither the thief nor the owner can use it
        await sign_in.with_refresh_token(third.refresh_token)


async def test_any_former_refresh_token_ends_the_session(sign_in: SignIn, ann: str, time: Time) -> None:
    """A thief who refreshes many times does not get rid of the owner's token."""
    owner = thief = await sign_in.with_password("ann", GOOD, HERE)
    for _ in range(3):
        time.pass_(sessions.GRACE + 1)
        thief = await sign_in.with_refresh_token(thief.refresh_token)
    family, _, _ = thief.refresh_token.partition(".")
    with pytest.raises(Unauthenticated):
        await sign_in.with_refresh_token("ksr_invented.by-somebody")
    thief = await sign_in.with_refresh_token(thief.refresh_token)  # an invented one ends nothing
    assert thief.refresh_token.startswith(family)
    with pytest.raises(Unauthenticated):
        await sign_in.with_refresh_token(owner.refresh_token)
    with pytest.raises(Unauthenticated):
        await sign_in.with_refresh_token(thief.refresh_token)


async def test_a_session_from_before_families_goes_on(sign_in: SignIn, ann: str, ask: Ask, time: Time) -> None:
    first = await sign_in.with_password("ann", GOOD, HERE)
    old = {"family_hash": None, "refresh_hash": hashed("ksr_old")}
    await ask(lambda connection: connection.execute(sa.update(schema.sessions).values(old)))
    second = await sign_in.with_refresh_token("ksr_old")
    assert second.user == first.user
    time.pass_(sessions.GRACE + 1)
    await sign_in.with_refresh_token(second.refresh_token)
    with pytest.raises(Unauthenticated):
        await sign_in.with_refresh_token(first.refresh_token)


async def test_sessions_end_by_idleness_and_at_last_anyway(sign_in: SignIn, ann: str, time: Time) -> None:
    idle = await sign_in.with_password("ann", GOOD, HERE)
    time.pass_(sessions.IDLE)
    with pytest.raises(Unauthenticated):
        await sign_in.with_refresh_token(idle.refresh_token)
    busy = await sign_in.with_password("ann", GOOD, HERE)
    begun = time()
    while time() - begun < sessions.ABSOLUTE - sessions.IDLE // 2:
        time.pass_(sessions.IDLE // 2)
        busy = await sign_in.with_refresh_token(busy.refresh_token)
    time.pass_(sessions.IDLE // 2)
    assert time() - begun == sessions.ABSOLUTE
    with pytest.raises(Unauthenticated):
        await sign_in.with_refresh_token(busy.refresh_token)


async def test_a_user_has_a_bounded_number_of_sessions(sign_in: SignIn, ann: str, ask: Ask, time: Time) -> None:
    for _ in range(sessions.MAX_SESSIONS + 3):
        await ask.timed(sessions.begin, ann, address="", agent="a" * 999)
        time.pass_(1)
    assert len(await ask.timed(sessions.of_user, ann)) == sessions.MAX_SESSIONS


async def test_nobody_ends_the_session_of_another(ask: Ask, sign_in: SignIn, ann: str, time: Time) -> None:
    bob = await ask.timed(users.create, name="bob")
    signed = await sign_in.with_password("ann", GOOD, HERE)
    sid = (await claims_of(sign_in, signed.token, time)).sid
    with pytest.raises(NotFound):
        await ask.timed(sessions.end, bob, sid)
    await ask.timed(sessions.end, ann, sid)
    assert await ask.timed(sessions.of_user, ann) == []


async def test_changing_the_password_ends_the_other_sessions(sign_in: SignIn, ann: str, time: Time) -> None:
    here, there = await sign_in.with_password("ann", GOOD, HERE), await sign_in.with_password("ann", GOOD, HERE)
    sid = (await claims_of(sign_in, here.token, time)).sid
    with pytest.raises(Unauthenticated, match="old password"):
        await sign_in.change_password(ann, "wrong password here", "another good password", session=sid, origin=HERE)
    with pytest.raises(FailedPrecondition, match="choose another"):
        await sign_in.change_password(ann, GOOD, GOOD, session=sid, origin=HERE)
    await sign_in.change_password(ann, GOOD, "another good password", session=sid, origin=HERE)
    assert not (await sign_in.with_refresh_token(here.refresh_token)).must_change_password
    with pytest.raises(Unauthenticated):
        await sign_in.with_refresh_token(there.refresh_token)
    with pytest.raises(Unauthenticated):
        await sign_in.with_password("ann", GOOD, HERE)


async def test_a_disabled_user_cannot_come_in_by_any_door(sign_in: SignIn, ann: str, ask: Ask) -> None:
    signed = await sign_in.with_password("ann", GOOD, HERE)
    await ask.timed(users.update, ann, display_name="", email="", disabled=True)
    with pytest.raises(Unauthenticated, match="name or the password"):
        await sign_in.with_password("ann", GOOD, HERE)
    with pytest.raises(Unauthenticated):
        await sign_in.with_refresh_token(signed.refresh_token)


@pytest.mark.parametrize("password", ["short", "aaaaaaaaaaaaaaaa", "i am ann and sly", ""])
def test_weak_passwords_are_refused(password: str) -> None:
    with pytest.raises(InvalidArgument):
        check_policy(password, name="ann")


async def test_a_forged_token_is_refused(
    sign_in: SignIn, ann: str, database: Database, sealer: object, time: Time
) -> None:
    signed = await sign_in.with_password("ann", GOOD, HERE)
    verifier = Verifier(await sign_in.public_keys())
    head, body, signature = signed.token.split(".")
    for forged in (
        f"{head}.{body}.",
        f"{head}.{body}x.{signature}",
        f"eyJhbGciOiJub25lIn0.{body}.",
        "",
        "x",
        "a.b.c",
        "\ud800",
    ):
        with pytest.raises(SessionTokenError):
            verifier.verify(forged, at=time())


async def test_keys_change_and_old_tokens_stay_good_for_their_time(
    sign_in: SignIn, ann: str, ask: Ask, sealer: object, time: Time
) -> None:
    time.pass_(30 * 86400 - 1)
    before = await ask.timed(Signer.load, sealer)
    time.pass_(30 * 86400)
    token = before.sign(Claims(sub=ann, sid="s", exp=time() + 60, iat=time(), csrf=""))
    keys = await sign_in.public_keys()
    assert len(keys["keys"]) == 2
    assert not any("d" in key for key in keys["keys"])
    assert Verifier(keys).verify(token, at=time()).sub == ann
    time.pass_(3 * 3600)
    await sign_in.public_keys()
    assert len((await sign_in.public_keys())["keys"]) == 1


async def test_access_tokens(ann: str, ask: Ask, time: Time) -> None:
    granted = ["kairship.deployments.get"]
    issued = await ask.timed(access_tokens.issue, ann, name="ci", granted=granted, days=30)
    assert issued.token not in repr(issued)
    found = await ask.timed(access_tokens.find, hashed(issued.token))
    assert found is not None
    assert (found.user_id, found.permissions) == (ann, *granted)
    for at, noted in ((time(), time()), (time() - 60, time()), (time() + 60, time() + 60)):  # never backwards
        await ask(access_tokens.record_uses, {issued.id: at, "t-of-nobody": at})
        [row] = await ask.timed(access_tokens.of_user, ann)
        assert row.last_used_at == noted
    assert issued.token.encode() not in bytes(row.hash)
    assert issued.token.startswith(row.hint)
    for wrong in (issued.token[:-1], issued.token + "x", "", "kst_", "\ud800"):
        assert await ask.timed(access_tokens.find, hashed(wrong)) is None
    time.pass_(30 * 86400)
    assert await ask.timed(access_tokens.find, hashed(issued.token)) is None


async def test_access_tokens_are_revoked_by_their_owner_only(ann: str, ask: Ask) -> None:
    bob = await ask.timed(users.create, name="bob")
    issued = await ask.timed(access_tokens.issue, ann, name="ci", granted=[], days=30)
    with pytest.raises(NotFound):
        await ask.timed(access_tokens.revoke, bob, issued.id)
    await ask.timed(access_tokens.revoke, ann, issued.id)
    assert await ask.timed(access_tokens.find, hashed(issued.token)) is None
    for days in (0, -1, 366):
        with pytest.raises(InvalidArgument):
            await ask.timed(access_tokens.issue, ann, name="ci", granted=[], days=days)
    with pytest.raises(InvalidArgument, match="no permission"):
        await ask.timed(access_tokens.issue, ann, name="ci", granted=["x"], days=1)


async def test_a_device_is_let_in_by_a_person_and_once(sign_in: SignIn, ann: str, ask: Ask, time: Time) -> None:
    begun = await ask.timed(device_login.begin, device="laptop", address="")
    assert await sign_in.with_device(begun.device_code, HERE) is None
    with pytest.raises(ResourceExhausted):
        await sign_in.with_device(begun.device_code, HERE)
    time.pass_(device_login.INTERVAL)
    await ask.timed(device_login.decide, begun.user_code.lower(), user=ann, approve=True)
    with pytest.raises(NotFound):  # a code can be decided once
        await ask.timed(device_login.decide, begun.user_code, user=ann, approve=True)
    signed = await sign_in.with_device(begun.device_code, HERE)
    assert signed is not None
    assert signed.user == ann
    with pytest.raises(Unauthenticated):
        await sign_in.with_device(begun.device_code, HERE)


async def test_strangers_do_not_take_the_places_of_all_devices(
    sign_in: SignIn, ann: str, ask: Ask, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_login, "MAX_PENDING", 6)
    monkeypatch.setattr(device_login, "MAX_PENDING_OF_NETWORK", 3)

    async def begin(address: str) -> device_login.DeviceAuthorization:
        time.pass_(1)
        return await ask.timed(device_login.begin, device="x", address=address)

    for number in range(3):
        await begin(f"2001:db8::{number}")  # addresses of one client
    with pytest.raises(ResourceExhausted, match="your network"):
        await begin("2001:db8::ffff")
    ours = await begin("192.0.2.1")
    for _ in range(3):
        await begin("198.51.100.7")
    assert len(await ask.rows(sa.select(schema.device_logins))) == 6
    await ask.timed(device_login.decide, ours.user_code, user=ann, approve=True)  # the crowded networks made room
    assert await sign_in.with_device(ours.device_code, HERE) is not None


async def test_a_device_that_is_refused_or_too_late(sign_in: SignIn, ann: str, ask: Ask, time: Time) -> None:
    refused = await ask.timed(device_login.begin, device="x", address="")
    await ask.timed(device_login.decide, refused.user_code, user=ann, approve=False)
    with pytest.raises(PermissionDenied):
        await sign_in.with_device(refused.device_code, HERE)
    late = await ask.timed(device_login.begin, device="x", address="")
    time.pass_(device_login.LIFETIME)
    with pytest.raises(NotFound):
        await ask.timed(device_login.decide, late.user_code, user=ann, approve=True)
    with pytest.raises(Unauthenticated):
        await sign_in.with_device(late.device_code, HERE)


async def test_the_first_password_is_shown_once_and_must_be_changed(
    database: Database, passwords: Passwords, sign_in: SignIn, ask: Ask, time: Time, tmp_path: Path
) -> None:
    password, token = tmp_path / "password", tmp_path / "token"
    password.write_text(f"{GOOD}\n")
    token.write_text("kst_0123456789ab")
    create = functools.partial(create_admin, database, passwords, password=password, token=token, clock=time)
    assert sorted(await asyncio.gather(*(create() for _ in range(3)))) == [False, False, True]
    removing = asyncio.create_task(remove_password_file_when_changed(database, password))
    signed = await sign_in.with_password("admin", GOOD, HERE)
    assert (signed.user, signed.must_change_password) == ("admin", True)
    found = await ask.timed(access_tokens.find, hashed("kst_0123456789ab"))
    assert found is not None
    assert (found.user_id, found.permissions) == ("admin", "")
    assert not await create()
    assert password.exists()
    session = (await claims_of(sign_in, signed.token, time)).sid
    await sign_in.change_password("admin", GOOD, "staple battery horse correct", session=session, origin=HERE)
    await asyncio.wait_for(removing, 5)
    assert not password.exists()


async def test_the_first_token_lasts_until_it_is_revoked(
    database: Database, passwords: Passwords, ask: Ask, time: Time, tmp_path: Path
) -> None:
    password, token = tmp_path / "password", tmp_path / "token"
    password.write_text(GOOD)
    token.write_text("kst_0123456789ab")
    await create_admin(database, passwords, password=password, token=token, clock=time)

    async def ends_in() -> float | None:
        found = await ask.timed(access_tokens.find, hashed("kst_0123456789ab"))
        return None if found is None else (found.expires_at - time()) / 86400

    for _ in range(3):
        time.pass_(334 * 86400)
        await extend_token(database, token, clock=time)
        assert await ends_in() == 31  # enough time is left
        time.pass_(2 * 86400)
        await extend_token(database, token, clock=time)
        assert await ends_in() == 365
    found = await ask.timed(access_tokens.find, hashed("kst_0123456789ab"))
    assert found is not None
    await ask.timed(access_tokens.revoke, "admin", found.id)
    await extend_token(database, token, clock=time)
    assert await ends_in() is None
    token.unlink()
    await extend_token(database, token, clock=time)


@pytest.mark.parametrize(
    ("content", "error"), [(None, StartError), ("short", StartError), ("admin" * 4, InvalidArgument)]
)
async def test_a_first_password_that_cannot_be_one_creates_nobody(
    database: Database, passwords: Passwords, ask: Ask, tmp_path: Path, content: str | None, error: type[Exception]
) -> None:
    password = tmp_path / "password"
    if content is not None:
        password.write_text(content)
    with pytest.raises(error):
        await create_admin(database, passwords, password=password)
    assert not await ask(users.exist)


async def test_every_attempt_is_in_the_audit_without_the_password(
    sign_in: SignIn, ann: str, ask: Ask, audit: AuditLog
) -> None:
    with pytest.raises(Unauthenticated):
        await sign_in.with_password("ann", "hunter2 hunter2", HERE)
    await sign_in.with_password("ann", GOOD, HERE)
    good, bad = await ask(audit.find, Filter(action="ghippo.sessions."))
    assert (bad.user_name, bad.outcome, bad.address) == ("ann", 16, "192.0.2.1")
    assert (good.user_id, good.outcome) == (ann, 0)
    assert "hunter2" not in str(bad)
