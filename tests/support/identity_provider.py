"""An OpenID Connect provider whose answers a test chooses. `support.keycloak` has a real one."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer
from joserfc import jwt
from joserfc.jwk import RSAKey

KEY = RSAKey.generate_key(2048, auto_kid=True)


class Provider:
    """Its attributes are its answers, and what it received."""

    def __init__(self) -> None:
        self.url = ""
        self.claims: dict[str, Any] = {}
        self.header: dict[str, Any] = {}
        self.key: Any = KEY
        self.published = [KEY]
        self.description: dict[str, Any] = {}
        self.status = 200
        self.body: bytes | None = None
        self.form: dict[str, str] = {}
        self.authorization = ""
        self.keys_fetched = 0
        self.before_answer: Callable[[], Awaitable[None]] | None = None
        """Is called before a token is issued."""

    async def describe(self, request: web.Request) -> web.StreamResponse:
        endpoints = {name: f"{self.url}/{name}" for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")}
        return web.json_response({"issuer": self.url} | endpoints | self.description)

    async def keys(self, request: web.Request) -> web.Response:
        self.keys_fetched += 1
        keys = [key.as_dict(private=False) for key in self.published]
        return web.json_response({"keys": [{"kty": "XYZ"}, {"kty": "RSA", "use": "enc"}, *keys]})

    async def token(self, request: web.Request) -> web.Response:
        self.form = {name: str(value) for name, value in (await request.post()).items()}
        self.authorization = request.headers.get("Authorization", "")
        if self.before_answer is not None:
            await self.before_answer()
        if self.body is not None or self.status != 200:
            return web.Response(status=self.status, body=self.body, headers={"Location": "http://127.0.0.1:1/"})
        header = {"alg": "RS256", "kid": getattr(self.key, "kid", None)} | self.header
        return web.json_response({"id_token": jwt.encode(header, self.claims, self.key, algorithms=["RS256", "HS256"])})


@asynccontextmanager
async def serving() -> AsyncIterator[Provider]:
    provider = Provider()
    app = web.Application()
    app.router.add_get("/.well-known/openid-configuration", provider.describe)
    app.router.add_get("/jwks_uri", provider.keys)
    app.router.add_post("/token_endpoint", provider.token)
    server = TestServer(app)
    await server.start_server()
    provider.url = str(server.make_url("")).rstrip("/")
    try:
        yield provider
    finally:
        await server.close()
