"""Identity providers that lie, are confused or are down sign no user in. (Keycloak is in tests/e2e.)"""

import base64
import hashlib
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
import sqlalchemy as sa
from joserfc.jwk import OctKey, RSAKey
from structlog.testing import capture_logs
from support.identity_provider import KEY, Provider, serving

from kairship.gen.kairship.ghippo.v1alpha1.session_pb import BeginProviderLoginRequest
from kairship.ghippo.database import Database, schema
from kairship.ghippo.errors import (
    FailedPrecondition,
    GhippoError,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    Unauthenticated,
    Unavailable,
)
from kairship.ghippo.identifiers import hashed
from kairship.ghippo.identity import access_tokens, directory, identity_providers, users
from kairship.ghippo.identity.identity_providers import Settings
from kairship.ghippo.identity.oidc import Issuers, ProviderLogin, issuer
from kairship.ghippo.identity.oidc.claims import MAX_GROUPS, group_names
from kairship.ghippo.identity.sign_in import Origin, SignedIn, SignIn
from kairship.ghippo.sealing import Sealer
from kairship.ghippo.services.sessions import Sessions
from kairship.ghippo.tenancy import bindings, roles
from kairship.kube import AddressRule
from kairship.rpc.calls import ANONYMOUS, Call, Caller
from kairship.wire import methods

from .conftest import Ask, Time

CALL = Call(
    request_id="00112233aabbccdd",
    caller=ANONYMOUS,
    method=methods()["/kairship.ghippo.v1alpha1.Sessions/BeginProviderLogin"],
    deadline=float("inf"),
    origin="192.0.2.1",
)
BACK = "https://kairship.example.com/back"
OTHER = RSAKey.generate_key(2048, auto_kid=True)
SECRET = "the-client-secret-of-corp"
NOBODY = Caller(id="u-nobody", name="")


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    async with serving() as provider:
        yield provider


class Journey:
    def __init__(self, login: ProviderLogin, provider: Provider, time: Time) -> None:
        self.login = login
        self._provider = provider
        self._time = time

    def use(self, provider: Provider) -> None:
        """Goes to another provider from now on."""
        self._provider = provider

    async def __call__(self, **claims: Any) -> SignedIn:
        """Signs in with valid claims, changed by those that are given here; None leaves a claim out."""
        authorization = await self.login.begin("corp", BACK)
        query = parse_qs(urlsplit(authorization.url).query)
        good = {
            "iss": self._provider.url,
            "aud": "kairship",
            "sub": "subject-1",
            "iat": self._time(),
            "exp": self._time() + 60,
            "nonce": query["nonce"][0],
            "preferred_username": "ann",
        }
        self._provider.claims = {name: value for name, value in (good | claims).items() if value is not None}
        signed = await self.login.finish("corp", state=authorization.state, code="c0de", origin=Origin("192.0.2.1"))
        challenge = hashlib.sha256(self._provider.form["code_verifier"].encode()).digest()
        assert query["code_challenge"][0] == base64.urlsafe_b64encode(challenge).rstrip(b"=").decode()
        return signed


@pytest.fixture
async def journey(
    database: Database, sealer: Sealer, sign_in: SignIn, provider: Provider, time: Time, ask: Ask
) -> AsyncIterator[Journey]:
    settings = Settings(name="corp", issuer=provider.url, client_id="kairship", redirect_uris=(BACK,))
    await ask(identity_providers.create, sealer, settings, SECRET)
    issuers = Issuers(AddressRule.allowing(["127.0.0.0/8"]))
    yield Journey(ProviderLogin(database, sealer, sign_in, issuers, clock=time), provider, time)
    await issuers.close()


async def nobody_came_in(ask: Ask) -> bool:
    return not await ask(users.exist)


async def test_good_claims_lead_in(journey: Journey, ask: Ask, provider: Provider) -> None:
    signed = await journey(groups=["devs"])
    user = await ask(users.get, signed.user)
    assert (user.name, user.provider, user.password_hash) == ("ann@corp", "corp", None)
    assert base64.b64decode(provider.authorization.removeprefix("Basic ")).decode() == f"kairship:{SECRET}"


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://other.example.com"},
        {"iss": None},
        {"aud": "somebody-else"},
        {"aud": None},
        {"aud": ["kairship", "other"]},
        {"aud": ["kairship", "other"], "azp": "other"},
        {"azp": "other"},
        {"nonce": "another"},
        {"nonce": None},
        {"exp": 1},
        {"exp": None},
        {"iat": 1_900_000_000, "exp": 1_900_000_060},
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"sub": "x" * 256},
    ],
)
async def test_claims_that_are_not_for_us_lead_nowhere(journey: Journey, ask: Ask, claims: dict[str, Any]) -> None:
    with pytest.raises(GhippoError):
        await journey(**claims)
    assert await nobody_came_in(ask)


async def test_a_signature_of_somebody_else_leads_nowhere(journey: Journey, ask: Ask, provider: Provider) -> None:
    provider.key = OTHER
    with pytest.raises(PermissionDenied):
        await journey()
    provider.header = {"kid": KEY.kid}
    with pytest.raises(PermissionDenied):
        await journey()
    provider.header, provider.key = {"alg": "HS256", "kid": KEY.kid}, OctKey.import_key(SECRET)
    with pytest.raises(PermissionDenied):
        await journey()
    provider.body = b'{"id_token":"eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0."}'
    with pytest.raises(PermissionDenied):
        await journey()
    assert await nobody_came_in(ask)


async def test_a_new_key_is_fetched_once_and_not_for_every_forgery(
    journey: Journey, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    await journey()
    assert provider.keys_fetched == 1
    monkeypatch.setattr(issuer, "_KEYS_REFETCH_AFTER", 0.0)
    provider.published, provider.key = [OTHER], OTHER
    await journey()
    assert provider.keys_fetched == 2
    monkeypatch.setattr(issuer, "_KEYS_REFETCH_AFTER", 3600.0)
    provider.key = KEY
    for _ in range(3):
        with pytest.raises(PermissionDenied):
            await journey()
    assert provider.keys_fetched == 2


async def test_names_and_addresses_lead_to_nobody_who_exists(journey: Journey, ask: Ask, provider: Provider) -> None:
    local = await ask.timed(users.create, name="ann", email="ann@example.com")
    first = await journey(email="ann@example.com", email_verified=True)
    second = await journey(sub="subject-2")  # another user of the provider with the name ann
    again = await journey(preferred_username="renamed")
    assert len({local, first.user, second.user}) == 3
    assert again.user == first.user
    assert (await ask(users.get, second.user)).name.endswith("@corp")
    odd = await journey(sub="subject-3", preferred_username="System:Masters\n\0../", name=["x"], email=7)
    assert (await ask(users.get, odd.user)).name == "system-masters-0@corp"


async def test_a_disabled_user_stays_out(journey: Journey, ask: Ask) -> None:
    signed = await journey()
    await ask.timed(users.update, signed.user, display_name="", email="", disabled=True)
    with pytest.raises(Unauthenticated, match="disabled"):
        await journey()


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (400, b'{"error":"invalid_grant"}', PermissionDenied),
        (401, b"", PermissionDenied),
        (302, b"", Unavailable),
        (500, b"", Unavailable),
        (200, b"", Unavailable),
        (200, b"{}", Unavailable),
        (200, b"[" * 10_000, Unavailable),
        (200, b'{"id_token":7}', Unavailable),
        (200, b'{"id_token":"x.y.z"}', PermissionDenied),
        (200, b'{"id_token":""}', PermissionDenied),
        (200, b"x" * (issuer.MAX_BYTES + 1), Unavailable),
    ],
)
async def test_what_a_provider_may_answer(
    journey: Journey, ask: Ask, provider: Provider, status: int, body: bytes, error: type[GhippoError]
) -> None:
    provider.status, provider.body = status, body
    with pytest.raises(error) as caught:
        await journey()
    assert SECRET not in str(caught.value)
    assert await nobody_came_in(ask)


@pytest.mark.parametrize(
    "description", [{"issuer": "https://evil.example.com"}, {"jwks_uri": "file:///etc/passwd"}, {"token_endpoint": 7}]
)
async def test_a_provider_that_is_somebody_else(
    journey: Journey, provider: Provider, description: dict[str, Any]
) -> None:
    provider.description = description
    with pytest.raises((PermissionDenied, Unavailable)):
        await journey()


async def test_states_and_returns(journey: Journey, ask: Ask, time: Time) -> None:
    for wrong in ("https://evil.example.com/", f"{BACK}/more", f"{BACK}?x", ""):
        with pytest.raises(InvalidArgument):
            await journey.login.begin("corp", wrong)
    authorization = await journey.login.begin("corp", BACK)
    assert authorization.state not in repr(authorization)
    time.pass_(600)
    with pytest.raises(PermissionDenied, match="too old"):
        await journey.login.finish("corp", state=authorization.state, code="c", origin=Origin())
    with pytest.raises(PermissionDenied, match="not known"):
        await journey.login.finish("corp", state="\ud800", code="c", origin=Origin())
    with pytest.raises(NotFound):
        await journey.login.begin("nowhere", BACK)


async def test_a_provider_that_is_off_is_as_if_it_was_not(
    journey: Journey, ask: Ask, sealer: Sealer, provider: Provider
) -> None:
    settings = Settings(name="corp", issuer=provider.url, client_id="kairship", redirect_uris=(BACK,), disabled=True)
    await ask.timed(identity_providers.update, sealer, settings, "", actor=NOBODY)
    with pytest.raises(NotFound):
        await journey.login.begin("corp", BACK)
    assert await ask(identity_providers.find, usable=True) == []


async def test_the_secret_does_not_follow_to_another_issuer(journey: Journey, ask: Ask, sealer: Sealer) -> None:
    settings = Settings(name="corp", issuer="https://evil.example.com", client_id="kairship", redirect_uris=(BACK,))
    with pytest.raises(InvalidArgument, match="client secret"):
        await ask.timed(identity_providers.update, sealer, settings, "", actor=NOBODY)
    row = await ask(identity_providers.get, "corp")
    assert SECRET not in str(row)


async def make_admin(ask: Ask, kind: str, subject: str) -> None:
    target = bindings.PLATFORM
    await ask.timed(bindings.create, subject_kind=kind, subject_id=subject, role="platform-admin", target=target)


async def local_user(ask: Ask, *granted: str) -> Caller:
    """A local user, with a custom role on the platform, or an administrator."""
    user = await ask.timed(users.create, name=f"local-{len(granted)}")
    if not granted:
        await make_admin(ask, "User", user)
        return Caller(id=user, name="")
    await ask(roles.create, "custom", display_name="", description="", granted=list(granted))
    await ask.timed(bindings.create, subject_kind="User", subject_id=user, role="custom", target=bindings.PLATFORM)
    return Caller(id=user, name="")


@pytest.mark.parametrize(
    "change",
    [
        {"issuer": "elsewhere"},
        {"groups_claim": "wishes"},
        {"client_id": "client-of-the-attacker"},
        {"redirect_uris": (BACK, "https://evil.example.com/back")},
    ],
)
async def test_whoever_changes_a_provider_becomes_nobody_of_it(
    journey: Journey, ask: Ask, sealer: Sealer, provider: Provider, change: dict[str, Any]
) -> None:
    """After each change the attacker could sign in as the administrator, or in the group of administrators."""
    root, helper = await local_user(ask), await local_user(ask, "ghippo.identityproviders.update")
    owner = (await journey(groups=["admins"])).user
    [(group, *_)] = await ask.rows(sa.select(schema.groups))
    await make_admin(ask, "User", owner)
    await make_admin(ask, "Group", group)
    token = await ask.timed(access_tokens.issue, owner, name="ci", granted=[], days=1)
    async with serving() as other:
        if "issuer" in change:
            change = {"issuer": other.url}
            provider = other
        good = Settings(name="corp", issuer=provider.url, client_id="kairship", redirect_uris=(BACK,))
        settings = msgspec.structs.replace(good, **change)
        for keep_users in (True, False):
            act = ask.timed(identity_providers.update, sealer, settings, SECRET, actor=helper, keep_users=keep_users)
            if keep_users:
                with pytest.raises(PermissionDenied, match="do not have there yourself"):
                    await act
            else:
                await act
        journey.use(provider)
        with pytest.raises(PermissionDenied, match="keepUsers"):
            await journey(aud=settings.client_id, azp=None, wishes=["admins"])
        # Its users are as if they were disabled, and are back when somebody who holds what they hold agrees.
        assert await ask.timed(access_tokens.find, hashed(token.token)) is None
        assert isinstance(next(iter(await ask(lambda c: list(directory._users(c, [owner]))))), directory.Gone)
        await ask.timed(identity_providers.update, sealer, settings, SECRET, actor=root, keep_users=True)
        assert await ask.timed(access_tokens.find, hashed(token.token)) is not None
        assert not (await ask(identity_providers.get, "corp")).unconfirmed
        assert (await journey(aud=settings.client_id, groups=["admins"])).user == owner


async def test_what_decides_nothing_is_changed_without_more(
    journey: Journey, ask: Ask, sealer: Sealer, provider: Provider
) -> None:
    settings = Settings(name="corp", issuer=provider.url, client_id="kairship", redirect_uris=(BACK, f"{BACK}/2"))
    await ask.timed(identity_providers.update, sealer, settings, "", actor=NOBODY)  # it has no users yet
    owner = (await journey()).user
    fewer = msgspec.structs.replace(settings, display_name="The corporation", redirect_uris=(BACK,))
    await ask.timed(identity_providers.update, sealer, fewer, "another secret", actor=NOBODY)
    assert (await journey()).user == owner


async def test_the_last_administrator_is_not_shut_out(
    journey: Journey, ask: Ask, sealer: Sealer, provider: Provider
) -> None:
    owner = (await journey()).user
    await make_admin(ask, "User", owner)
    settings = Settings(
        name="corp", issuer=provider.url, client_id="kairship", redirect_uris=(BACK,), groups_claim="wishes"
    )
    with pytest.raises(FailedPrecondition, match="no Platform Admin"):
        await ask.timed(identity_providers.update, sealer, settings, "", actor=NOBODY)
    actor = Caller(id=owner, name="")
    await ask.timed(identity_providers.update, sealer, settings, "", actor=actor, keep_users=True)
    assert (await journey()).user == owner


async def test_a_provider_made_anew_does_not_adopt_the_users_of_the_old(
    journey: Journey, ask: Ask, sealer: Sealer, provider: Provider
) -> None:
    old = (await journey(groups=["admins"])).user
    settings = Settings(name="corp", issuer=provider.url, client_id="kairship", redirect_uris=(BACK,))
    for number in (1, 2):
        await ask(identity_providers.delete, "corp")
        await ask(identity_providers.create, sealer, settings, SECRET)
        new = (await journey(groups=["admins"])).user
        assert new != old
        found = await ask(users.groups_of, [old, new])
        assert not set(found[old]) & set(found[new])
        assert (await ask(users.get, old)).name != (await ask(users.get, new)).name
        assert number == len({row.provider for row in await ask.rows(sa.select(schema.users))}) - 1


async def test_a_provider_that_changes_during_a_sign_in(
    journey: Journey, ask: Ask, sealer: Sealer, provider: Provider
) -> None:
    settings = Settings(
        name="corp", issuer=provider.url, client_id="kairship", redirect_uris=(BACK,), groups_claim="wishes"
    )

    async def change() -> None:
        await ask.timed(identity_providers.update, sealer, settings, SECRET, actor=NOBODY)

    provider.before_answer = change
    with pytest.raises(PermissionDenied, match="changed during"):
        await journey()
    assert await nobody_came_in(ask)


@pytest.mark.parametrize(
    "change",
    [{"name": "Corp"}, {"name": ""}, {"issuer": "http://login.example.com"}, {"issuer": "https://x/?y"},
     {"client_id": ""}, {"redirect_uris": ()}, {"redirect_uris": ("javascript:alert(1)",)},
     {"groups_claim": "x" * 129}],
)  # fmt: skip
def test_settings_that_are_refused(change: dict[str, Any]) -> None:
    good = Settings(name="corp", issuer="https://login.example.com", client_id="k", redirect_uris=(BACK,))
    good.check()
    with pytest.raises(InvalidArgument):
        msgspec.structs.replace(good, **change).check()


def test_groups_are_plain_names_and_none_of_kubernetes() -> None:
    claim = [
        "devs",
        "system:masters",
        "/system:masters",
        "SYSTEM:nodes",
        "kairship:user:1",
        "a\nb",
        "",
        "x" * 129,
        7,
        None,
    ]
    assert group_names({"groups": claim}, "groups") == ["devs"]
    assert group_names({"roles": "one"}, "roles") == ["one"]
    assert group_names({"groups": {"a": 1}}, "groups") == group_names({}, "groups") == []
    with pytest.raises(PermissionDenied):
        group_names({"groups": [f"g{number}" for number in range(MAX_GROUPS + 1)]}, "groups")


async def test_signing_in_tells_nothing_of_what_is_at_the_address(
    database: Database, sealer: Sealer, sign_in: SignIn, provider: Provider, time: Time, ask: Ask
) -> None:
    """An address that is refused, a closed port and a server that is no provider: whoever signs in hears the same."""
    port = provider.url.rpartition(":")[2]
    issuers_of = {
        "refused": (AddressRule(), provider.url),
        "refused-by-name": (AddressRule(), f"http://localhost:{port}"),
        "closed": (AddressRule.allowing(["127.0.0.1"]), "http://127.0.0.1:1"),
        "another": (AddressRule.allowing(["127.0.0.1"]), provider.url),
    }
    provider.description = {"issuer": "http://127.0.0.1/the-name-of-another"}
    told, logged = [], []
    for name, (addresses, url) in issuers_of.items():
        settings = Settings(name=name, issuer=url, client_id="kairship", redirect_uris=(BACK,))
        await ask(identity_providers.create, sealer, settings, SECRET)
        issuers = Issuers(addresses)
        sessions = Sessions(database, sign_in, ProviderLogin(database, sealer, sign_in, issuers, clock=time))
        with capture_logs() as lines, pytest.raises(Unavailable) as refused:
            await sessions.begin_provider_login(BeginProviderLoginRequest(provider=name, redirect_uri=BACK), CALL)
        await issuers.close()
        told.append((refused.value.message, refused.value.retry_after))
        logged += [line["reason"] for line in lines if line.get("request_id") == CALL.request_id]
    assert len(set(told)) == 1
    assert CALL.request_id in told[0][0]
    assert [reason.partition(":")[0] for reason in logged[:2]] == ["RefusedAddressError"] * 2
    assert len(set(logged)) == 3
