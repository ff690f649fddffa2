"""The service Users: users and their passwords, as administrators manage them."""

from typing import Any

import sqlalchemy as sa
from protobuf.wkt import Empty

from kairship.gen.kairship.ghippo.v1alpha1.user_pb import (
    CreateUserRequest,
    DeleteUserRequest,
    GetUserRequest,
    ListUsersRequest,
    ListUsersResponse,
    ResetPasswordRequest,
    UpdateUserRequest,
    User,
)
from kairship.ghippo.database import Database
from kairship.ghippo.identifiers import Now, now
from kairship.ghippo.identity import users
from kairship.ghippo.identity.passwords import Passwords, check_policy
from kairship.ghippo.identity.sign_in import SignIn
from kairship.ghippo.listing import Page, pagination
from kairship.ghippo.tenancy import escalation
from kairship.rpc.calls import Call


def user_message(row: sa.Row[Any], groups: list[str]) -> User:
    return User(
        id=row.id,
        name=row.name,
        display_name=row.display_name,
        email=row.email,
        disabled=row.disabled,
        provider=row.provider,
        groups=groups,
        created_at=row.created_at,
        last_login_at=row.last_login_at,
    )


def read_user(connection: sa.Connection, identifier: str) -> User:
    row = users.get(connection, identifier)
    return user_message(row, users.groups_of(connection, [identifier])[identifier])


class Users:
    def __init__(self, database: Database, passwords: Passwords, sign_in: SignIn, *, clock: Now = now) -> None:
        self._database = database
        self._passwords = passwords
        self._sign_in = sign_in
        self._now = clock

    async def list_users(self, request: ListUsersRequest, call: Call) -> ListUsersResponse:
        page = Page.of(request)

        def work(connection: sa.Connection) -> ListUsersResponse:
            rows, total = users.find(connection, page)
            groups = users.groups_of(connection, [row.id for row in rows])
            items = [user_message(row, groups[row.id]) for row in rows]
            return ListUsersResponse(items=items, pagination=pagination(page, total))

        return await self._database.read(work)

    async def create_user(self, request: CreateUserRequest, call: Call) -> User:
        users.check_name(request.name)
        hash_ = None
        if request.password:
            check_policy(request.password, name=request.name)
            hash_ = await self._passwords.hash(request.password)

        def work(connection: sa.Connection) -> User:
            identifier = users.create(
                connection,
                name=request.name,
                display_name=request.display_name,
                email=request.email,
                password_hash=hash_,
                at=self._now(),
            )
            return read_user(connection, identifier)

        return await self._database.write(work)

    async def get_user(self, request: GetUserRequest, call: Call) -> User:
        return await self._database.read(lambda connection: read_user(connection, request.id))

    async def update_user(self, request: UpdateUserRequest, call: Call) -> User:
        def work(connection: sa.Connection) -> User:
            escalation.check_may_become(connection, call.caller, user=request.id)
            users.update(
                connection,
                request.id,
                display_name=request.display_name,
                email=request.email,
                disabled=request.disabled,
                at=self._now(),
            )
            return read_user(connection, request.id)

        return await self._database.write(work)

    async def reset_password(self, request: ResetPasswordRequest, call: Call) -> Empty:
        await self._database.read(
            lambda connection: escalation.check_may_become(connection, call.caller, user=request.id)
        )
        await self._sign_in.set_password(request.id, request.password, keep_tokens=request.keep_access_tokens)
        return Empty()

    async def delete_user(self, request: DeleteUserRequest, call: Call) -> Empty:
        def work(connection: sa.Connection) -> None:
            escalation.check_may_become(connection, call.caller, user=request.id)
            users.delete(connection, request.id, at=self._now())

        await self._database.write(work)
        return Empty()
