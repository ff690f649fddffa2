"""The service CurrentUser: the caller's own account, sessions and access tokens."""

from typing import Any

import sqlalchemy as sa
from protobuf.wkt import Empty

from kairship.gen.kairship.ghippo.v1alpha1.current_user_pb import (
    AccessToken,
    ChangePasswordRequest,
    CreateAccessTokenRequest,
    CreateAccessTokenResponse,
    DeleteAccessTokenRequest,
    DeleteSessionRequest,
    GetCurrentUserRequest,
    ListAccessTokensRequest,
    ListAccessTokensResponse,
    ListSessionsRequest,
    ListSessionsResponse,
    Session,
)
from kairship.gen.kairship.ghippo.v1alpha1.user_pb import User
from kairship.ghippo.database import Database
from kairship.ghippo.identifiers import Now, now
from kairship.ghippo.identity import access_tokens, sessions
from kairship.ghippo.identity.sign_in import SignIn
from kairship.ghippo.services.calls import origin_of, require_session
from kairship.ghippo.services.users import read_user
from kairship.rpc.calls import Call


def _token_message(row: sa.Row[Any]) -> AccessToken:
    return AccessToken(
        id=row.id,
        name=row.name,
        permissions=row.permissions.split(),
        created_at=row.created_at,
        expires_at=row.expires_at,
        last_used_at=row.last_used_at,
        hint=row.hint,
        instance=row.instance,
    )


class CurrentUser:
    def __init__(self, database: Database, sign_in: SignIn, *, clock: Now = now) -> None:
        self._database = database
        self._sign_in = sign_in
        self._now = clock

    async def get_current_user(self, request: GetCurrentUserRequest, call: Call) -> User:
        return await self._database.read(lambda connection: read_user(connection, call.caller.id))

    async def change_password(self, request: ChangePasswordRequest, call: Call) -> Empty:
        await self._sign_in.change_password(
            call.caller.id,
            request.old_password,
            request.new_password,
            session=require_session(call),
            origin=origin_of(call),
        )
        return Empty()

    async def list_sessions(self, request: ListSessionsRequest, call: Call) -> ListSessionsResponse:
        rows = await self._database.read(
            lambda connection: sessions.of_user(connection, call.caller.id, at=self._now())
        )
        items = [
            Session(
                id=row.id,
                address=row.address,
                agent=row.agent,
                created_at=row.created_at,
                last_used_at=row.last_used_at,
                expires_at=row.expires_at,
                current=row.id == call.caller.session,
            )
            for row in rows
        ]
        return ListSessionsResponse(items=items)

    async def delete_session(self, request: DeleteSessionRequest, call: Call) -> Empty:
        await self._database.write(
            lambda connection: sessions.end(connection, call.caller.id, request.id, at=self._now())
        )
        return Empty()

    async def list_access_tokens(self, request: ListAccessTokensRequest, call: Call) -> ListAccessTokensResponse:
        rows = await self._database.read(
            lambda connection: access_tokens.of_user(connection, call.caller.id, at=self._now())
        )
        return ListAccessTokensResponse(items=[_token_message(row) for row in rows])

    async def create_access_token(self, request: CreateAccessTokenRequest, call: Call) -> CreateAccessTokenResponse:
        require_session(call)

        def work(connection: sa.Connection) -> CreateAccessTokenResponse:
            issued = access_tokens.issue(
                connection,
                call.caller.id,
                name=request.name,
                granted=request.permissions,
                days=request.days,
                at=self._now(),
            )
            [row] = [
                row for row in access_tokens.of_user(connection, call.caller.id, at=self._now()) if row.id == issued.id
            ]
            return CreateAccessTokenResponse(token=issued.token, access_token=_token_message(row))

        return await self._database.write(work)

    async def delete_access_token(self, request: DeleteAccessTokenRequest, call: Call) -> Empty:
        await self._database.write(
            lambda connection: access_tokens.revoke(connection, call.caller.id, request.id, at=self._now())
        )
        return Empty()
