"""The service Sessions: signing in and out."""

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa
import structlog
from protobuf.wkt import Empty

from kairship.gen.kairship.ghippo.v1alpha1.session_pb import (
    ApproveDeviceLoginRequest,
    BeginDeviceLoginRequest,
    BeginDeviceLoginResponse,
    BeginProviderLoginRequest,
    BeginProviderLoginResponse,
    FinishDeviceLoginRequest,
    FinishProviderLoginRequest,
    GetLoginOptionsRequest,
    GetLoginOptionsResponse,
    LoginRequest,
    LoginResponse,
    LogoutRequest,
    LogoutResponse,
    ProviderOption,
    RefreshTokenRequest,
)
from kairship.ghippo.database import Database
from kairship.ghippo.errors import FailedPrecondition, NotFound, PermissionDenied, Unavailable
from kairship.ghippo.identifiers import Now, now
from kairship.ghippo.identity import device_login, identity_providers, lockout, sessions, users
from kairship.ghippo.identity.oidc import ProviderLogin, ProviderUnreachable
from kairship.ghippo.identity.sign_in import SignedIn, SignIn
from kairship.ghippo.services.calls import origin_of, require_session
from kairship.ghippo.services.users import read_user
from kairship.rpc.calls import Call

log = structlog.get_logger(__name__)


@contextmanager
def _reasons_logged(call: Call) -> Iterator[None]:
    """Logs why an identity provider could not be used. Whoever signs in has no credential yet, and learns nothing of
    what is at the provider's address."""
    try:
        yield
    except ProviderUnreachable as failure:
        log.warning("an identity provider could not be reached", request_id=call.request_id, reason=failure.reason)
        raise Unavailable(
            "the identity provider could not be reached; the operator finds the reason in the log under request id "
            f"{call.request_id}"
        ) from failure


class Sessions:
    def __init__(self, database: Database, sign_in: SignIn, providers: ProviderLogin, *, clock: Now = now) -> None:
        self._database = database
        self._sign_in = sign_in
        self._providers = providers
        self._now = clock

    async def login(self, request: LoginRequest, call: Call) -> LoginResponse:
        return await self._reply(await self._sign_in.with_password(request.name, request.password, origin_of(call)))

    async def get_login_options(self, request: GetLoginOptionsRequest, call: Call) -> GetLoginOptionsResponse:
        rows = await self._database.read(lambda connection: identity_providers.find(connection, usable=True))
        return GetLoginOptionsResponse(
            providers=[ProviderOption(name=row.name, display_name=row.display_name) for row in rows]
        )

    async def begin_provider_login(self, request: BeginProviderLoginRequest, call: Call) -> BeginProviderLoginResponse:
        with _reasons_logged(call):
            authorization = await self._providers.begin(request.provider, request.redirect_uri)
        return BeginProviderLoginResponse(authorization_url=authorization.url, state=authorization.state)

    async def finish_provider_login(self, request: FinishProviderLoginRequest, call: Call) -> LoginResponse:
        with _reasons_logged(call):
            signed = await self._providers.finish(
                request.provider, state=request.state, code=request.code, origin=origin_of(call)
            )
        return await self._reply(signed)

    async def refresh_token(self, request: RefreshTokenRequest, call: Call) -> LoginResponse:
        return await self._reply(await self._sign_in.with_refresh_token(request.refresh_token))

    async def logout(self, request: LogoutRequest, call: Call) -> LogoutResponse:
        session = require_session(call)
        provider_url = await self._logout_url(session, call.caller.id, request.redirect_uri)
        await self._database.write(lambda connection: sessions.end(connection, call.caller.id, session, at=self._now()))
        return LogoutResponse(provider_logout_url=provider_url)

    async def begin_device_login(self, request: BeginDeviceLoginRequest, call: Call) -> BeginDeviceLoginResponse:
        device = await self._database.write(
            lambda connection: device_login.begin(
                connection, device=request.device, address=call.origin, at=self._now()
            )
        )
        return BeginDeviceLoginResponse(
            device_code=device.device_code,
            user_code=device.user_code,
            expires_in=device_login.LIFETIME,
            interval=device_login.INTERVAL,
        )

    async def finish_device_login(self, request: FinishDeviceLoginRequest, call: Call) -> LoginResponse:
        signed = await self._sign_in.with_device(request.device_code, origin_of(call))
        if signed is None:
            raise FailedPrecondition(
                "this device is not approved yet; ask again", retry_after=float(device_login.INTERVAL)
            )
        return await self._reply(signed)

    async def approve_device_login(self, request: ApproveDeviceLoginRequest, call: Call) -> Empty:
        require_session(call)
        # In a transaction of its own: a wrong code is counted, though approving it fails.
        await self._database.write(
            lambda connection: lockout.begin_code_attempt(connection, user=call.caller.id, at=self._now())
        )

        def work(connection: sa.Connection) -> None:
            lockout.record_code_success(connection, user=call.caller.id)
            device_login.decide(
                connection, request.user_code, user=call.caller.id, approve=request.approve, at=self._now()
            )

        await self._database.write(work)
        return Empty()

    async def _logout_url(self, session: str, user: str, redirect_uri: str) -> str:
        """The logout URL of the identity provider; empty if it fails, so that signing out here always works."""

        def work(connection: sa.Connection) -> tuple[str, bytes | None]:
            row = sessions.find(connection, session)
            return users.get(connection, user).provider, None if row is None else row.sealed_id_token

        provider, sealed_id_token = await self._database.read(work)
        if not provider or sealed_id_token is None:
            return ""
        try:
            return await self._providers.logout_url(provider, sealed_id_token, redirect_uri)
        except (NotFound, PermissionDenied, Unavailable):
            return ""

    async def _reply(self, signed: SignedIn) -> LoginResponse:
        return LoginResponse(
            token=signed.token,
            expires_at=signed.expires_at,
            refresh_token=signed.refresh_token,
            csrf_token=signed.csrf_token,
            must_change_password=signed.must_change_password,
            user=await self._database.read(lambda connection: read_user(connection, signed.user)),
        )
