"""Identity providers that lie, are confused or are down sign no user in. (Keycloak is in tests/e2e.)"""

import base64
import hashlib
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
from joserfc.jwk import OctKey, RSAKey
from support.identity_provider import KEY, Provider, serving

from kairship.ghippo.database import Database
from kairship.ghippo.errors import (
    GhippoError,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    Unauthenticated,
    Unavailable,
)
from kairship.ghippo.identity import identity_providers, users
from kairship.ghippo.identity.identity_providers import Settings
from kairship.ghippo.identity.oidc import Issuers, ProviderLogin, issuer
from kairship.ghippo.identity.oidc.claims import MAX_GROUPS, group_names
from kairship.ghippo.identity.sign_in import Origin, SignedIn, SignIn
from kairship.ghippo.sealing import Sealer

from .conftest import Ask, Time

BACK = "https://kairship.example.com/back"
OTHER = RSAKey.generate_key(2048, auto_kid=True)
SECRET = "the-client-secret-of-corp"


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    async with serving() as provider:
        yield provider


class Journey:
    def __init__(self, login: ProviderLogin, provider: Provider, time: Time) -> None:
        self.login = login
        self._provider = provider
        self._time = time

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
    issuers = Issuers()
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
    await ask(identity_providers.update, sealer, settings, "")
    with pytest.raises(NotFound):
        await journey.login.begin("corp", BACK)
    assert await ask(identity_providers.find, usable=True) == []


async def test_the_secret_does_not_follow_to_another_issuer(journey: Journey, ask: Ask, sealer: Sealer) -> None:
    settings = Settings(name="corp", issuer="https://evil.example.com", client_id="kairship", redirect_uris=(BACK,))
    with pytest.raises(InvalidArgument, match="client secret"):
        await ask(identity_providers.update, sealer, settings, "")
    row = await ask(identity_providers.get, "corp")
    assert SECRET not in str(row)


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
