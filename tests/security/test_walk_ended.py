"""Calls every route and method with a credential that is no longer valid: it is expired or revoked, or its user is
disabled, or its session has ended. The caller counts as not signed in."""

import hashlib
import time
from collections.abc import Callable

import msgspec
import pytest
from joserfc import jwt
from joserfc.jwk import OKPKey
from support.bindings import World, bind, on
from support.entrance import running

from kairship.access import Identities, Role
from kairship.access.session_tokens import ALGORITHM, Claims
from kairship.apiserver.auth.token_authenticator import TokenAuthenticator
from kairship.apiserver.flowcontrol.limits import Limits
from kairship.gen.kairship.api.v1.access_pb import Scope
from kairship.gen.kairship.internal.v1.directory_pb import FollowResponse, Identity, Token
from kairship.reconcile import SystemClock

from .test_walk import ADMITTED, HERE, UNKNOWN, askings

TOKEN = "kst_of-ann-who-may-do-everything"
LIMITS = Limits(bad_tokens_burst=100_000, calls_burst=100_000)


class Directory:
    """The identities of global management; Ann has an access token and a session."""

    def __init__(self) -> None:
        self.later = 0.0
        self._key = OKPKey.generate_key("Ed25519", auto_kid=True)
        self.identities = Identities(SystemClock(), wall=self._wall)
        keys = msgspec.json.encode({"keys": [self._key.as_dict(private=False)]}).decode()
        token = Token(id="t-1", hash=hashlib.sha256(TOKEN.encode()).digest(), user="ann")
        token.expires_at = int(time.time()) + 3600
        ann = Identity(id="ann", name="ann")
        self.tell(FollowResponse(reset=True, complete=True, identities=[ann], tokens=[token], keys=keys))
        self.authenticator = TokenAuthenticator(
            self.identities, look_up=self._unknown, note_use=lambda _: None, limits=LIMITS, wall=self._wall
        )

    def _wall(self) -> float:
        return time.time() + self.later

    async def _unknown(self, _: bytes) -> bool:
        return False

    def tell(self, told: FollowResponse) -> None:
        self.identities.apply(told)

    def session(self) -> str:
        at = int(time.time())
        claims = Claims(sub="ann", sid="s-1", iat=at, exp=at + 300, csrf="c")
        header = {"alg": ALGORITHM, "kid": self._key.kid, "typ": "JWT"}
        return jwt.encode(header, msgspec.to_builtins(claims), self._key, algorithms=[ALGORITHM])


def pass_time(directory: Directory) -> None:
    directory.later = 4000.0


def revoke(directory: Directory) -> None:
    directory.tell(FollowResponse(complete=True, gone_tokens=["t-1"]))


def disable(directory: Directory) -> None:
    directory.tell(FollowResponse(complete=True, gone_users=["ann"]))


def sign_out(directory: Directory) -> None:
    directory.tell(FollowResponse(complete=True, ended_sessions=["s-1"]))


@pytest.mark.parametrize(
    ("in_session", "end"),
    [(False, pass_time), (False, revoke), (False, disable), (True, pass_time), (True, disable), (True, sign_out)],
)
async def test_what_was_good_once_is_good_for_nothing(in_session: bool, end: Callable[[Directory], None]) -> None:
    directory = Directory()
    shown = directory.session() if in_session else TOKEN
    world = World(bind("ann", Role.PLATFORM_ADMIN, on()))
    async with running(authenticator=directory.authenticator, world=world, limits=LIMITS) as server:
        client = server.client.named(shown)
        first = askings(HERE)[0]
        assert [status for status, _ in await first.over_rest(client)] == [ADMITTED]
        end(directory)
        for asking in askings(HERE):
            wanted = ADMITTED if asking.method.scope is Scope.ANYBODY else UNKNOWN
            assert {status for status, _ in await asking.over_rest(client)} == {wanted}, asking.method.path
            assert await asking.over_grpc(client) == wanted, asking.method.path
