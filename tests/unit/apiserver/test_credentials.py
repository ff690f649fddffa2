"""Who calls: access tokens and session tokens, checked from memory; what is not good, and how often it may be tried."""

import hashlib
from typing import Any

import msgspec
import pytest
from joserfc import jwt
from joserfc.jwk import KeySet, OKPKey

from kairship.access import Identities
from kairship.access.session_tokens import ALGORITHM, Claims
from kairship.apiserver.authentication import SessionOver
from kairship.apiserver.credentials import UNKNOWN_FOR, Credentials
from kairship.apiserver.limits import Limits
from kairship.gen.kairship.internal.v1.directory_pb import FollowResponse, Identity, Token
from kairship.reconcile import SystemClock
from kairship.rpc.calls import Caller, Envelope
from kairship.rpc.errors import ResourceExhausted, Unauthenticated, Unavailable

TOKEN, OTHER = "kst_token-of-ann", "kst_another-of-ann"
ANN = Identity(id="u-ann", name="ann", groups=["g-devs"])


def hashed(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def token(value: str = TOKEN, *, limited_to: tuple[str, ...] = (), expires_at: int = 2_000_000_000) -> Token:
    found = Token(id=f"t-{value}", hash=hashed(value), user=ANN.id, limited_to=list(limited_to))
    found.expires_at = expires_at
    return found


class World:
    """An entrance, as far as it knows people, and global management as far as it is asked."""

    def __init__(self, **limits: Any) -> None:
        self.wall, self.now, self.step = 1_800_000_000.0, 0.0, 0.001
        self.key = OKPKey.generate_key("Ed25519", auto_kid=True)
        self.identities = Identities(SystemClock(), wall=lambda: self.wall)
        self.elsewhere: dict[bytes, Token] = {}
        self.asked = 0
        self.used: list[str] = []
        self.credentials = Credentials(
            self.identities,
            look_up=self._look_up,
            note_use=self.used.append,
            limits=Limits(**limits),
            wall=lambda: self.wall,
            clock=self._clock,
        )
        keys = msgspec.json.encode({"keys": [self.key.as_dict(private=False)]}).decode()
        self.identities.take(FollowResponse(reset=True, complete=True, identities=[ANN], tokens=[token()], keys=keys))

    def _clock(self) -> float:
        self.now += self.step  # waiting takes time
        return self.now

    async def _look_up(self, hash_: bytes) -> bool:
        self.asked += 1
        if found := self.elsewhere.get(hash_):
            self.identities.add(found, ANN)
        return found is not None

    async def asks(self, header: str | None, *, origin: str = "192.0.2.1") -> Caller:
        headers = {} if header is None else {"authorization": header}
        return await self.credentials.authenticate(Envelope.around(headers, origin))

    async def shows(self, value: str) -> Caller:
        return await self.asks(f"Bearer {value}")

    def signed(self, *, key: OKPKey | None = None, **changes: Any) -> str:
        at = int(self.wall)
        claims = Claims(sub=ANN.id, sid="s-1", iat=at, exp=at + 300, csrf="c")
        claims = msgspec.structs.replace(claims, **changes)
        used = key or self.key
        header = {"alg": ALGORITHM, "kid": self.key.kid, "typ": "JWT"}
        return jwt.encode(header, msgspec.to_builtins(claims), used, algorithms=[ALGORITHM])


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize("header", [f"Bearer {TOKEN}", f"bearer {TOKEN}", f"Bearer  {TOKEN} "])
async def test_whoever_has_an_access_token_is_its_owner(world: World, header: str) -> None:
    caller = await world.asks(header)
    assert caller == Caller(id="u-ann", name="ann", groups=("g-devs",), token=f"t-{TOKEN}")
    assert (world.asked, world.used) == (0, [f"t-{TOKEN}"])


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        f"Basic {TOKEN}",
        TOKEN,
        f"Bearer {OTHER}",
        f"Bearer {TOKEN}x",
        "Bearer é",
        f"Bearer {'x' * 10_000}",
        "Bearer a.b.c",
        "Bearer ..",
    ],
)
async def test_nobody_else_is(world: World, header: str | None) -> None:
    with pytest.raises(Unauthenticated) as refused:
        await world.asks(header)
    assert TOKEN not in str(refused.value)


async def test_a_token_may_be_for_less(world: World) -> None:
    narrow = token(OTHER, limited_to=("kairship.pods.get",))
    world.identities.take(FollowResponse(complete=True, tokens=[narrow]))
    assert (await world.shows(OTHER)).limited_to == frozenset({"kairship.pods.get"})


async def test_a_token_that_nobody_told_of_is_asked_for_once(world: World) -> None:
    world.elsewhere[hashed(OTHER)] = token(OTHER)
    assert (await world.shows(OTHER)).id == ANN.id
    await world.shows(OTHER)
    assert world.asked == 1
    for _ in range(3):
        with pytest.raises(Unauthenticated):
            await world.shows("kst_of-nobody")
    assert world.asked == 2
    world.now += UNKNOWN_FOR
    with pytest.raises(Unauthenticated):
        await world.shows("kst_of-nobody")
    assert world.asked == 3


@pytest.mark.parametrize(
    "end",
    [
        FollowResponse(complete=True, gone_tokens=[f"t-{TOKEN}"]),
        FollowResponse(complete=True, gone_users=[ANN.id]),
        FollowResponse(reset=True, complete=True, identities=[ANN]),
    ],
)
async def test_what_has_ended_is_not_good_any_more(world: World, end: FollowResponse) -> None:
    await world.shows(TOKEN)
    world.identities.take(end)
    with pytest.raises(Unauthenticated):
        await world.shows(TOKEN)


async def test_a_token_expires(world: World) -> None:
    world.wall = 2_000_000_000.0
    with pytest.raises(Unauthenticated):
        await world.shows(TOKEN)


async def test_a_session(world: World) -> None:
    caller = await world.shows(world.signed(chg=True))
    assert caller == Caller(
        id="u-ann",
        name="ann",
        groups=("g-devs",),
        authenticated_by="session",
        session="s-1",
        csrf="c",
        must_change_password=True,
    )


async def test_a_session_token_expires_though_it_was_verified_before(world: World) -> None:
    signed = world.signed()
    await world.shows(signed)
    world.wall += 300
    with pytest.raises(Unauthenticated, match="expired"):
        await world.shows(signed)


async def test_a_session_that_has_ended_is_over_at_once(world: World) -> None:
    signed = world.signed()
    await world.shows(signed)
    world.identities.take(FollowResponse(complete=True, ended_sessions=["s-1"]))
    with pytest.raises(Unauthenticated, match="ended"):
        await world.shows(signed)


async def test_a_genuine_token_of_somebody_who_is_gone(world: World) -> None:
    world.step = 0.5
    with pytest.raises(Unauthenticated, match="ended"):
        await world.shows(world.signed(sub="u-bob"))


@pytest.mark.parametrize("changes", [{"iss": "other"}, {"aud": "other"}, {"iat": 2_000_000_000}, {"exp": 1}])
async def test_a_token_that_is_not_for_here_and_now(world: World, changes: dict[str, Any]) -> None:
    with pytest.raises(Unauthenticated):
        await world.shows(world.signed(**changes))


async def test_a_token_that_somebody_else_signed(world: World) -> None:
    """Such as one of a service account of Kubernetes."""
    with pytest.raises(Unauthenticated):
        await world.shows(world.signed(key=OKPKey.generate_key("Ed25519")))
    hollow = KeySet.generate_key_set("oct", 256).keys[0]
    forged = jwt.encode({"alg": "HS256"}, {"sub": ANN.id}, hollow, algorithms=["HS256"])
    with pytest.raises(Unauthenticated):
        await world.shows(forged)


async def test_without_keys_nobody_can_say(world: World) -> None:
    signed = world.signed()
    world.identities.verifier = None
    with pytest.raises(Unavailable) as said:
        await world.shows(signed)
    assert said.value.retry_after


async def test_who_tries_too_often_is_told_when_to_come_back() -> None:
    world = World(bad_tokens_at_once=3, bad_tokens_per_second=1.0)
    for number in range(3):
        with pytest.raises(Unauthenticated):
            await world.shows(f"kst_{number}")
    with pytest.raises(ResourceExhausted) as said:
        await world.shows("kst_more")
    assert said.value.retry_after is not None
    assert 0 < said.value.retry_after <= 1
    assert world.asked == 3
    assert (await world.shows(TOKEN)).id == ANN.id  # what is good is good
    with pytest.raises(Unauthenticated):  # and others are not to blame
        await world.asks("Bearer kst_more", origin="192.0.2.2")
    world.now += 1.0
    with pytest.raises(Unauthenticated):
        await world.shows("kst_again")


async def test_sessions_that_had_their_time_are_no_attempts() -> None:
    """Behind one address there may be a thousand people whose tokens expire every five minutes."""
    world = World(bad_tokens_at_once=1, bad_tokens_per_second=0.1)
    signed = world.signed()
    world.wall += 300
    for _ in range(5):
        with pytest.raises(SessionOver):
            await world.shows(signed)
    world.identities.take(FollowResponse(complete=True, ended_sessions=["s-2"]))
    for _ in range(5):
        with pytest.raises(SessionOver):
            await world.shows(world.signed(sid="s-2"))


async def test_who_calls_too_often_is_told_when_to_come_back() -> None:
    world = World(calls_at_once=5, calls_per_second=10.0)
    for _ in range(5):
        await world.shows(TOKEN)
    with pytest.raises(ResourceExhausted) as said:
        await world.shows(TOKEN)
    assert said.value.retry_after is not None
    world.now += said.value.retry_after
    assert (await world.shows(TOKEN)).id == ANN.id
