"""Signing in with a real identity provider, as a browser does: form, code, groups, and rotated keys."""

import html
import re
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest
import sqlalchemy as sa
from argon2 import PasswordHasher
from support import keycloak
from yarl import URL

from kairship.ghippo.audit import AuditLog
from kairship.ghippo.database import Database, schema
from kairship.ghippo.errors import InvalidArgument, PermissionDenied
from kairship.ghippo.identity import groups, identity_providers, users
from kairship.ghippo.identity.oidc import Issuers, ProviderLogin
from kairship.ghippo.identity.passwords import Passwords
from kairship.ghippo.identity.sign_in import Origin, SignedIn, SignIn
from kairship.ghippo.sealing import Sealer
from kairship.kube import AddressRule

BACK = "http://127.0.0.1:9999/back"
PASSWORD = "correct horse battery"


@pytest.fixture(scope="module")
def server() -> Iterator[keycloak.Keycloak]:
    with keycloak.running() as running:
        yield running


class Administration:
    """Keycloak's own REST API, as far as these tests need it."""

    def __init__(self, server: keycloak.Keycloak, session: aiohttp.ClientSession) -> None:
        self._server = server
        self._session = session
        self.realm = f"r{uuid.uuid4().hex[:8]}"
        self._token = ""

    @property
    def issuer(self) -> str:
        return f"{self._server.url}/realms/{self.realm}"

    async def sign_in(self) -> None:
        form = {
            "grant_type": "password",
            "client_id": "admin-cli",
            "username": self._server.admin,
            "password": self._server.password,
        }
        url = f"{self._server.url}/realms/master/protocol/openid-connect/token"
        async with self._session.post(url, data=form) as reply:
            self._token = (await reply.json())["access_token"]

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        url = f"{self._server.url}/admin/realms{path}"
        headers = {"Authorization": f"Bearer {self._token}"}
        async with self._session.request(method, url, json=body, headers=headers) as reply:
            assert reply.status < 300, (reply.status, await reply.text())
            return await reply.json() if reply.content_type == "application/json" else None

    async def prepare(self) -> None:
        await self.sign_in()
        mapper = {
            "name": "groups",
            "protocol": "openid-connect",
            "protocolMapper": "oidc-group-membership-mapper",
            "config": {"claim.name": "groups", "full.path": "false", "id.token.claim": "true"},
        }
        client = {
            "clientId": "kairship",
            "secret": "the-client-secret",
            "redirectUris": [BACK],
            "standardFlowEnabled": True,
            "attributes": {"pkce.code.challenge.method": "S256"},
            "protocolMappers": [mapper],
        }
        user = {
            "username": "ann",
            "email": "ann@example.com",
            "firstName": "Ann",
            "lastName": "Example",
            "emailVerified": True,
            "enabled": True,
            "groups": ["devs", "system:masters"],
            "credentials": [{"type": "password", "value": PASSWORD, "temporary": False}],
        }
        realm = {
            "realm": self.realm,
            "enabled": True,
            "sslRequired": "none",
            "groups": [{"name": "devs"}, {"name": "system:masters"}],
            "clients": [client],
            "users": [user],
        }
        await self.call("POST", "", realm)

    async def leave_group(self, name: str) -> None:
        await self.sign_in()  # the token from before lasts for a minute
        [user] = await self.call("GET", f"/{self.realm}/users?username=ann")
        [group] = [each for each in await self.call("GET", f"/{self.realm}/groups") if each["name"] == name]
        await self.call("DELETE", f"/{self.realm}/users/{user['id']}/groups/{group['id']}")

    async def change_keys(self) -> None:
        await self.sign_in()  # the token from before lasts for a minute
        realm = await self.call("GET", f"/{self.realm}")
        key = {
            "name": "another",
            "providerId": "rsa-generated",
            "providerType": "org.keycloak.keys.KeyProvider",
            "parentId": realm["id"],
            "config": {"priority": ["500"], "keySize": ["2048"], "algorithm": ["RS256"]},
        }
        await self.call("POST", f"/{self.realm}/components", key)


@pytest.fixture
async def browser(server: keycloak.Keycloak) -> AsyncIterator[aiohttp.ClientSession]:
    # As in browsers: an address without a name may set cookies, and loopback counts as TLS.
    jar = aiohttp.CookieJar(unsafe=True, treat_as_secure_origin=URL(server.url))
    async with aiohttp.ClientSession(cookie_jar=jar, timeout=aiohttp.ClientTimeout(total=60)) as session:
        yield session


@pytest.fixture
async def admin(server: keycloak.Keycloak) -> AsyncIterator[Administration]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)) as session:
        administration = Administration(server, session)
        await administration.prepare()
        yield administration


class Ours:
    def __init__(self, database: Database, sealer: Sealer, passwords: Passwords, issuers: Issuers) -> None:
        self.database = database
        sign_in = SignIn(database, passwords, sealer, AuditLog(sealer))
        self.login = ProviderLogin(database, sealer, sign_in, issuers)

    async def group_names(self, user: str) -> set[str]:
        def work(connection: sa.Connection) -> set[str]:
            found = users.groups_of(connection, [user])[user]
            return {groups.get(connection, each).name for each in found}

        return await self.database.read(work)


@pytest.fixture
async def ours(admin: Administration, tmp_path: Path) -> AsyncIterator[Ours]:
    database, sealer, issuers = (
        Database(f"sqlite:///{tmp_path / 'g.db'}"),
        Sealer(Sealer.generate_key()),
        Issuers(AddressRule.allowing(["127.0.0.0/8"])),
    )
    passwords = Passwords(hasher=PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
    await database.open()
    settings = identity_providers.Settings(
        name="corp", issuer=admin.issuer, client_id="kairship", redirect_uris=(BACK,)
    )
    await database.write(
        lambda connection: identity_providers.create(connection, sealer, settings, "the-client-secret")
    )
    yield Ours(database, sealer, passwords, issuers)
    await issuers.close()
    await database.close()
    passwords.close()


async def go(browser: aiohttp.ClientSession, url: str) -> dict[str, str]:
    """Signs in at the provider as a user does, and returns the parameters of the redirect."""
    async with browser.get(url, allow_redirects=False) as reply:
        location, page = reply.headers.get("Location"), await reply.text()
    if location is None:
        action = re.search(r'<form[^>]*id="kc-form-login"[^>]*action="([^"]+)"', page)
        assert action is not None, page[:3000]
        form = {"username": "ann", "password": PASSWORD}
        async with browser.post(html.unescape(action[1]), data=form, allow_redirects=False) as reply:
            location = reply.headers.get("Location")
            assert location is not None, await reply.text()
    assert location.startswith(BACK)
    return {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}


async def sign_in(ours: Ours, browser: aiohttp.ClientSession) -> SignedIn:
    departure = await ours.login.begin("corp", BACK)
    back = await go(browser, departure.url)
    assert back["state"] == departure.state
    return await ours.login.finish("corp", state=back["state"], code=back["code"], origin=Origin("192.0.2.1"))


async def test_a_person_signs_in_and_has_the_groups_of_the_claim(
    ours: Ours, admin: Administration, browser: aiohttp.ClientSession
) -> None:
    signed = await sign_in(ours, browser)
    user = await ours.database.read(lambda connection: users.get(connection, signed.user))
    assert (user.name, user.email, user.display_name) == ("ann@corp", "ann@example.com", "Ann Example")
    assert not signed.must_change_password
    assert await ours.group_names(signed.user) == {"devs"}  # and no system:masters
    await admin.leave_group("devs")
    again = await sign_in(ours, browser)
    assert again.user == signed.user
    assert await ours.group_names(signed.user) == set()


async def test_keys_that_change_are_followed(
    ours: Ours, admin: Administration, browser: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sign_in(ours, browser)
    await admin.change_keys()
    monkeypatch.setattr("kairship.ghippo.identity.oidc.issuer._KEYS_REFETCH_AFTER", 0.0)
    await sign_in(ours, browser)


async def test_signing_out_ends_the_session_at_the_provider_too(
    ours: Ours, admin: Administration, browser: aiohttp.ClientSession
) -> None:
    await sign_in(ours, browser)

    async def is_known_there() -> bool:
        departure = await ours.login.begin("corp", BACK)
        async with browser.get(departure.url, allow_redirects=False) as reply:
            return "Location" in reply.headers  # redirected at once, without a form

    assert await is_known_there()
    [sealed] = await ours.database.read(
        lambda connection: connection.execute(sa.select(schema.sessions.c.sealed_id_token)).scalars().all()
    )
    with pytest.raises(InvalidArgument):
        await ours.login.logout_url("corp", sealed, "https://elsewhere.example.com")
    async with browser.get(await ours.login.logout_url("corp", sealed, "")) as reply:
        assert reply.status == 200
    assert not await is_known_there()


async def test_a_code_is_good_once_and_only_with_its_state(
    ours: Ours, admin: Administration, browser: aiohttp.ClientSession
) -> None:
    departure = await ours.login.begin("corp", BACK)
    back = await go(browser, departure.url)
    other = await ours.login.begin("corp", BACK)
    with pytest.raises(PermissionDenied):  # the code of one sign-in with the verifier of another
        await ours.login.finish("corp", state=other.state, code=back["code"], origin=Origin())
    with pytest.raises(PermissionDenied):  # the provider has seen the code
        await ours.login.finish("corp", state=back["state"], code=back["code"], origin=Origin())
    with pytest.raises(PermissionDenied, match="not known"):  # and we have seen the state
        await ours.login.finish("corp", state=back["state"], code=back["code"], origin=Origin())
    found = await ours.database.read(lambda connection: connection.execute(sa.select(schema.users)).all())
    assert found == []
