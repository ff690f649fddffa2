"""The first user of a new plane: `admin`, with an initial password that must be changed.

The installer generates the password, shows it, and passes it in a file, so that it is not lost if a process dies in
between. The file is removed when the password has been changed.
"""

import asyncio
from pathlib import Path

import sqlalchemy as sa
import structlog

from kairship.access import Role
from kairship.ghippo.database import Database
from kairship.ghippo.errors import GhippoError
from kairship.ghippo.identifiers import Now, hashed, now
from kairship.ghippo.identity import access_tokens, users
from kairship.ghippo.identity.passwords import Passwords, check_policy
from kairship.ghippo.tenancy import bindings
from kairship.process.change_notifier import wait_at_most
from kairship.process.start_error import StartError

_TOKEN = "the first access token"  # noqa: S105 - its name
_POLL_INTERVAL = 60.0
_EXTEND_EVERY = 86400.0

log = structlog.get_logger(__name__)


async def create_admin(
    database: Database, passwords: Passwords, *, password: Path, token: Path | None = None, clock: Now = now
) -> bool:
    """Creates the administrator with the secrets in these files; returns False if there are users already.

    Of several replicas that start together one creates it. The token is for the installer's own programs.
    """
    if await database.read(users.exist):
        return False
    initial = read_secret_file(password)
    check_policy(initial, name=users.ADMIN)
    hash_ = await passwords.hash(initial)
    first_token = read_secret_file(token) if token else None

    def work(connection: sa.Connection) -> bool:
        if users.exist(connection):
            return False
        at = clock()
        user = users.create(
            connection,
            name=users.ADMIN,
            identifier=users.ADMIN,
            display_name="Administrator",
            password_hash=hash_,
            at=at,
        )
        bindings.create(
            connection,
            subject_kind="User",
            subject_id=user,
            role=Role.PLATFORM_ADMIN.id,
            target=bindings.PLATFORM,
            at=at,
        )
        if first_token:
            access_tokens.issue(
                connection, user, name=_TOKEN, granted=[], days=access_tokens.MAX_DAYS, at=at, token=first_token
            )
        return True

    return await database.write(work)


async def remove_password_file_when_changed(database: Database, password: Path) -> None:
    """Removes the file when the administrator has changed the initial password, and returns."""
    while password.exists():
        change = database.changes.next_change()
        try:
            unchanged = await database.read(_has_initial_password)
        except GhippoError:
            unchanged = True  # the database does not answer, so the file stays
        if unchanged:
            await wait_at_most(change, _POLL_INTERVAL)
            continue
        try:
            password.unlink(missing_ok=True)
        except OSError as error:
            log.info("the initial password was changed; remove its file by hand", error=error.strerror)
        return


async def keep_token_extended(database: Database, token: Path) -> None:
    """Keeps the first token from expiring while its file exists: programs that use it cannot ask for another.

    An operator ends it by revoking the token, or by removing the file.
    """
    while token.exists():
        await extend_token(database, token)
        await asyncio.sleep(_EXTEND_EVERY)


async def extend_token(database: Database, token: Path, *, clock: Now = now) -> None:
    try:
        hash_ = hashed(read_secret_file(token))
        if await database.write(lambda connection: access_tokens.extend(connection, hash_, at=clock())):
            log.info("the first access token was extended", days=access_tokens.MAX_DAYS)
    except (GhippoError, StartError) as error:
        log.warning("the first access token cannot be extended now", error=str(error))


def read_secret_file(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            found = file.read(4096).strip()
    except (OSError, ValueError) as error:
        raise StartError(f"{path} cannot be read: {type(error).__name__}") from None
    if len(found) < access_tokens.MIN_LENGTH:
        raise StartError(f"the secret in {path} is too short: it needs at least {access_tokens.MIN_LENGTH} characters")
    return found


def _has_initial_password(connection: sa.Connection) -> bool:
    admin = users.find_by_name(connection, users.ADMIN)
    return admin is not None and bool(admin.must_change_password)
