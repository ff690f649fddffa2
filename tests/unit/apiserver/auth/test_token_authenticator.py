"""Access tokens and session tokens are checked from memory, and invalid ones are limited by rate."""

import hashlib
from typing import Any

import msgspec
import pytest
from joserfc import jwt
from joserfc.jwk import KeySet, OKPKey

from kairship.access import Identities
from kairship.access.session_tokens import ALGORITHM, Claims
from kairship.apiserver.auth.authentication import SessionEnded
from kairship.apiserver.auth.token_authenticator import NOT_FOUND_CACHE_SECONDS, TokenAuthenticator
from kairship.apiserver.flowcontrol.limits import Limits
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
    """An authenticator with the identities that it knows, and the tokens that only global management knows."""

    def __init__(self, **limits: Any) -> None:
        self.wall, self.now, self.step = 1_800_000_000.0, 0.0, 0.001
        self.key = OKPKey.generate_key("Ed25519", auto_kid=True)
        self.identities = Identities(SystemClock(), wall=lambda: self.wall)
        self.not_announced: dict[bytes, Token] = {}
        self.look_ups = 0
        self.used: list[str] = []
        self.authenticator = TokenAuthenticator(
            self.identities,
            look_up=self._look_up,
            note_use=self.used.append,
            limits=Limits(**limits),
            wall=lambda: self.wall,
            clock=self._clock,
        )
        keys = msgspec.json.encode({"keys": [self.key.as_dict(private=False)]}).decode()
        self.identities.apply(FollowResponse(reset=True, complete=True, identities=[ANN], tokens=[token()], keys=keys))

    def _clock(self) -> float:
        self.now += self.step  # every look at the clock takes time
        return self.now

    async def _look_up(self, hash_: bytes) -> bool:
        self.look_ups += 1
        if found := self.not_announced.get(hash_):
            self.identities.add(found, ANN)
        return found is not None

    async def authenticate(self, header: str | None, *, origin: str = "192.0.2.1") -> Caller:
        headers = {} if header is None else {"authorization": header}
        return await self.authenticator.authenticate(Envelope.around(headers, origin))

    async def with_token(self, value: str) -> Caller:
        return await self.authenticate(f"Bearer {value}")

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
async def test_an_access_token_authenticates_its_owner(world: World, header: str) -> None:
    caller = await world.authenticate(header)
    assert caller == Caller(id="u-ann", name="ann", groups=("g-devs",), token=f"t-{TOKEN}")
    assert (world.look_ups, world.used) == (0, [f"t-{TOKEN}"])


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
async def test_any_other_header_is_refused(world: World, header: str | None) -> None:
    with pytest.raises(Unauthenticated) as refused:
        await world.authenticate(header)
    assert TOKEN not in str(refused.value)


async def test_a_token_may_be_limited_to_permissions(world: World) -> None:
    narrow = token(OTHER, limited_to=("kairship.pods.get",))
    world.identities.apply(FollowResponse(complete=True, tokens=[narrow]))
    assert (await world.with_token(OTHER)).limited_to == frozenset({"kairship.pods.get"})


async def test_a_token_that_was_not_announced_is_looked_up_once(world: World) -> None:
    world.not_announced[hashed(OTHER)] = token(OTHER)
    assert (await world.with_token(OTHER)).id == ANN.id
    await world.with_token(OTHER)
    assert world.look_ups == 1
    for _ in range(3):
        with pytest.raises(Unauthenticated):
            await world.with_token("kst_of-no-user")
    assert world.look_ups == 2
    world.now += NOT_FOUND_CACHE_SECONDS
    with pytest.raises(Unauthenticated):
        await world.with_token("kst_of-no-user")
    assert world.look_ups == 3


@pytest.mark.parametrize(
    "end",
    [
        FollowResponse(complete=True, gone_tokens=[f"t-{TOKEN}"]),
        FollowResponse(complete=True, gone_users=[ANN.id]),
        FollowResponse(reset=True, complete=True, identities=[ANN]),
    ],
)
async def test_a_token_ends_with_its_revocation_and_its_user(world: World, end: FollowResponse) -> None:
    await world.with_token(TOKEN)
    world.identities.apply(end)
    with pytest.raises(Unauthenticated):
        await world.with_token(TOKEN)


async def test_a_token_expires(world: World) -> None:
    world.wall = 2_000_000_000.0
    with pytest.raises(Unauthenticated):
        await world.with_token(TOKEN)


async def test_a_session(world: World) -> None:
    caller = await world.with_token(world.signed(chg=True))
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
    await world.with_token(signed)
    world.wall += 300
    with pytest.raises(Unauthenticated, match="expired"):
        await world.with_token(signed)


async def test_a_session_that_has_ended_is_over_at_once(world: World) -> None:
    signed = world.signed()
    await world.with_token(signed)
    world.identities.apply(FollowResponse(complete=True, ended_sessions=["s-1"]))
    with pytest.raises(Unauthenticated, match="ended"):
        await world.with_token(signed)


async def test_a_genuine_token_of_a_deleted_user(world: World) -> None:
    world.step = 0.5
    with pytest.raises(Unauthenticated, match="ended"):
        await world.with_token(world.signed(sub="u-bob"))


@pytest.mark.parametrize("changes", [{"iss": "other"}, {"aud": "other"}, {"iat": 2_000_000_000}, {"exp": 1}])
async def test_a_token_with_wrong_claims(world: World, changes: dict[str, Any]) -> None:
    with pytest.raises(Unauthenticated):
        await world.with_token(world.signed(**changes))


async def test_a_token_that_another_key_signed(world: World) -> None:
    """For example, the token of a Kubernetes service account."""
    with pytest.raises(Unauthenticated):
        await world.with_token(world.signed(key=OKPKey.generate_key("Ed25519")))
    hollow = KeySet.generate_key_set("oct", 256).keys[0]
    forged = jwt.encode({"alg": "HS256"}, {"sub": ANN.id}, hollow, algorithms=["HS256"])
    with pytest.raises(Unauthenticated):
        await world.with_token(forged)


async def test_without_keys_a_session_cannot_be_checked(world: World) -> None:
    signed = world.signed()
    world.identities.verifier = None
    with pytest.raises(Unavailable) as refusal:
        await world.with_token(signed)
    assert refusal.value.retry_after


async def test_invalid_tokens_are_limited_by_address() -> None:
    world = World(bad_tokens_burst=3, bad_tokens_per_second=1.0)
    for number in range(3):
        with pytest.raises(Unauthenticated):
            await world.with_token(f"kst_{number}")
    with pytest.raises(ResourceExhausted) as refusal:
        await world.with_token("kst_more")
    assert refusal.value.retry_after is not None
    assert 0 < refusal.value.retry_after <= 1
    assert world.look_ups == 3
    assert (await world.with_token(TOKEN)).id == ANN.id  # a valid token still works
    with pytest.raises(Unauthenticated):  # and other addresses are not limited
        await world.authenticate("Bearer kst_more", origin="192.0.2.2")
    world.now += 1.0
    with pytest.raises(Unauthenticated):
        await world.with_token("kst_again")


async def test_expired_sessions_do_not_count_as_invalid_tokens() -> None:
    """Behind one address there may be a thousand users whose tokens expire every five minutes."""
    world = World(bad_tokens_burst=1, bad_tokens_per_second=0.1)
    signed = world.signed()
    world.wall += 300
    for _ in range(5):
        with pytest.raises(SessionEnded):
            await world.with_token(signed)
    world.identities.apply(FollowResponse(complete=True, ended_sessions=["s-2"]))
    for _ in range(5):
        with pytest.raises(SessionEnded):
            await world.with_token(world.signed(sid="s-2"))


async def test_calls_are_limited_by_caller() -> None:
    world = World(calls_burst=5, calls_per_second=10.0)
    for _ in range(5):
        await world.with_token(TOKEN)
    with pytest.raises(ResourceExhausted) as refusal:
        await world.with_token(TOKEN)
    assert refusal.value.retry_after is not None
    world.now += refusal.value.retry_after
    assert (await world.with_token(TOKEN)).id == ANN.id
