"""Sign-in: from a password, a refresh token, an approved device or an identity provider to a session.

There is one `SignIn` per process. Every attempt is in the audit log, and no answer reveals whether a user exists.
"""

import hashlib
import secrets
from typing import Any

import msgspec
import sqlalchemy as sa

from kairship.access.session_tokens import Claims
from kairship.ghippo.audit import AuditLog, Entry
from kairship.ghippo.database import Database
from kairship.ghippo.errors import FailedPrecondition, Unauthenticated
from kairship.ghippo.identifiers import Now, now, storable
from kairship.ghippo.identity import device_login, lockout, sessions, users
from kairship.ghippo.identity.passwords import Passwords, check_policy
from kairship.ghippo.identity.signing_keys import LIFETIME, Signer
from kairship.ghippo.sealing import Sealer

_WRONG_CREDENTIALS = "the name or the password is wrong"
_SESSION_ENDED = "the session has ended; sign in again"


class Origin(msgspec.Struct, frozen=True):
    """The client of a request."""

    address: str = ""
    agent: str = ""
    request_id: str = ""


class SignedIn(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens of a user who has signed in. Only hashes of them are stored."""

    token: str
    expires_at: int
    refresh_token: str
    csrf_token: str
    must_change_password: bool
    user: str

    def __repr__(self) -> str:
        return f"SignedIn(user={self.user!r})"

    __str__ = __repr__


class SignIn:
    def __init__(
        self, database: Database, passwords: Passwords, sealer: Sealer, audit: AuditLog, *, clock: Now = now
    ) -> None:
        self._database = database
        self._passwords = passwords
        self._sealer = sealer
        self._audit = audit
        self._now = clock

    async def with_password(self, name: str, password: str, origin: Origin) -> SignedIn:
        """Signs in with a password. argon2 is called once, whether or not there is such a user."""
        at, name = self._now(), storable(name.strip().lower())
        await self._database.write(
            lambda connection: lockout.begin_attempt(connection, name=name, address=origin.address, at=at)
        )
        found = await self._database.read(lambda connection: users.find_by_name(connection, name))
        usable = found is not None and not found.disabled and not found.provider
        right = await self._passwords.verify(found.password_hash if found is not None else None, password)
        if found is None or not right or not usable:
            await self._record_failure(name, origin, outcome=Unauthenticated.CODE)
            raise Unauthenticated(_WRONG_CREDENTIALS)
        if self._passwords.is_outdated(found.password_hash):
            await self._rehash(found.id, found.password_hash, password)
        return await self._database.write(lambda connection: self._begin(connection, found.id, name, origin))

    async def with_refresh_token(self, token: str) -> SignedIn:
        """Continues a session with its refresh token.

        The transaction returns None instead of raising: that it ends a stolen session must be committed.
        """
        at = self._now()

        def work(connection: sa.Connection) -> SignedIn | None:
            opened = sessions.refresh(connection, token, at=at)
            return None if opened is None else self._issue_tokens(connection, opened)

        signed = await self._database.write(work)
        if signed is None:
            raise Unauthenticated(_SESSION_ENDED)
        return signed

    async def with_device(self, device_code: str, origin: Origin) -> SignedIn | None:
        """Signs in a device that a user has approved; None while the decision is pending."""
        at = self._now()

        def work(connection: sa.Connection) -> SignedIn | None:
            user = device_login.poll(connection, device_code, at=at)
            return None if user is None else self._begin(connection, user, users.get(connection, user).name, origin)

        return await self._database.write(work)

    def as_user(self, connection: sa.Connection, user: sa.Row[Any], origin: Origin, *, id_token: str) -> SignedIn:
        """Signs in a user whom an identity provider has authenticated with this ID token. In a write transaction."""
        if user.disabled or user.suspended:
            raise Unauthenticated("this user is disabled; ask an administrator")
        return self._begin(connection, user.id, user.name, origin, sealed_id_token=self._sealer.seal(id_token))

    async def change_password(self, user: str, old: str, new: str, *, session: str, origin: Origin) -> None:
        """Changes the caller's password and ends all other sessions. Wrong old passwords count for the lockout."""
        at = self._now()
        found = await self._database.read(lambda connection: users.get(connection, user))
        check_policy(new, name=found.name)
        if old == new:
            raise FailedPrecondition("the new password is the same as the old one; choose another")
        await self._database.write(
            lambda connection: lockout.begin_attempt(connection, name=found.name, address=origin.address, at=at)
        )
        if not await self._passwords.verify(found.password_hash, old):
            raise Unauthenticated("the old password is wrong")
        fresh = await self._passwords.hash(new)

        def work(connection: sa.Connection) -> None:
            lockout.record_success(connection, name=found.name, address=origin.address)
            users.set_password(connection, user, fresh, must_change=False)
            users.end_sessions(connection, user, but=session, at=at)

        await self._database.write(work)

    async def set_password(self, user: str, password: str, *, keep_tokens: bool = False) -> None:
        """Sets a password for an administrator: the user must change it at the next sign-in, and all sessions end.

        So do the access tokens, unless they are to be kept: whoever knew the old password may have made them.
        """
        found = await self._database.read(lambda connection: users.get(connection, user))
        check_policy(password, name=found.name)
        fresh = await self._passwords.hash(password)

        def work(connection: sa.Connection) -> None:
            users.set_password(connection, user, fresh, must_change=True)
            users.end_sessions(connection, user, at=self._now())
            if not keep_tokens:
                users.end_tokens(connection, user, at=self._now())

        await self._database.write(work)

    async def public_keys(self) -> dict[str, Any]:
        """The JSON Web Key Set that session tokens are verified with."""
        signer = await self._database.write(lambda connection: Signer.load(connection, self._sealer, at=self._now()))
        return signer.public_keys()

    def _begin(
        self,
        connection: sa.Connection,
        user: str,
        name: str,
        origin: Origin,
        *,
        sealed_id_token: bytes | None = None,
    ) -> SignedIn:
        at = self._now()
        lockout.record_success(connection, name=name, address=origin.address)
        opened = sessions.begin(
            connection, user, address=origin.address, agent=origin.agent, at=at, sealed_id_token=sealed_id_token
        )
        users.record_login(connection, user, at=at)
        self._audit.append(connection, [self._entry(name, origin, user=user)])
        return self._issue_tokens(connection, opened)

    def _issue_tokens(self, connection: sa.Connection, opened: sessions.OpenedSession) -> SignedIn:
        at, csrf = self._now(), secrets.token_urlsafe(24)
        user = users.get(connection, opened.user)
        claims = Claims(
            sub=opened.user,
            sid=opened.id,
            iat=at,
            exp=at + LIFETIME,
            csrf=hashlib.sha256(csrf.encode()).hexdigest(),
            chg=user.must_change_password,
        )
        return SignedIn(
            token=Signer.load(connection, self._sealer, at=at).sign(claims),
            expires_at=claims.exp,
            refresh_token=opened.refresh_token,
            csrf_token=csrf,
            must_change_password=user.must_change_password,
            user=opened.user,
        )

    async def _rehash(self, user: str, known: str, password: str) -> None:
        """Hashes the password with the present parameters, unless it was changed meanwhile."""
        fresh = await self._passwords.hash(password)
        await self._database.write(lambda connection: users.replace_hash(connection, user, known=known, fresh=fresh))

    async def _record_failure(self, name: str, origin: Origin, *, outcome: int) -> None:
        entry = self._entry(name, origin, outcome=outcome)
        await self._database.write(lambda connection: self._audit.append(connection, [entry]))

    def _entry(self, name: str, origin: Origin, *, user: str = "", outcome: int = 0) -> Entry:
        return Entry(
            at=self._now(),
            action="ghippo.sessions.create",
            user_id=user,
            user_name=name,
            address=origin.address,
            outcome=outcome,
            request_id=origin.request_id,
        )
