"""The first user of a new plane: `admin`, with a password that somebody else made, shows, and that must be changed.

Whoever sets the plane up makes the password and hands it over in a file, so it cannot get lost between its making and
its showing, whoever dies in between. When it has been changed the file is of no use to anybody, and is removed.
"""

import asyncio
from pathlib import Path

import sqlalchemy as sa
import structlog

from kairship.access import Role
from kairship.ghippo import access_tokens, bindings, users
from kairship.ghippo.database import Database
from kairship.ghippo.database.pulse import wait
from kairship.ghippo.errors import GhippoError
from kairship.ghippo.identifiers import Now, hashed, now
from kairship.ghippo.passwords import Passwords, check_policy
from kairship.process.starting import StartError

_TOKEN = "the first access token"  # noqa: S105 - its name
_LOOK_AGAIN = 60.0
_EXTEND_EVERY = 86400.0

log = structlog.get_logger(__name__)


async def create_admin(
    database: Database, passwords: Passwords, *, password: Path, token: Path | None = None, clock: Now = now
) -> bool:
    """With what is in these files. False if there are users already; of replicas that start together one creates it.

    The token is one that programs of whoever sets the plane up use from the first moment.
    """
    if await database.read(users.exist):
        return False
    given = read_handed_over(password)
    check_policy(given, name=users.ADMIN)
    hash_ = await passwords.hash(given)
    first_token = read_handed_over(token) if token else None

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
                connection, user, name=_TOKEN, granted=[], days=access_tokens.LONGEST, at=at, token=first_token
            )
        return True

    return await database.write(work)


async def remove_when_changed(database: Database, password: Path) -> None:
    """Returns when the password in the file is not the administrator's any more, and the file is gone."""
    while password.exists():
        beat = database.pulse.next()
        try:
            unchanged = await database.read(_has_the_first_password)
        except GhippoError:
            unchanged = True  # it is not known, so the file stays
        if unchanged:
            await wait(beat, _LOOK_AGAIN)
            continue
        try:
            password.unlink(missing_ok=True)
        except OSError as error:
            log.info("the first password was changed; its file may be removed", error=error.strerror)
        return


async def keep_token(database: Database, token: Path) -> None:
    """The first token does not end while its file is there, for the programs that use it cannot ask for another.

    Whoever does not want it any more revokes it, or removes the file.
    """
    while token.exists():
        await extend_token(database, token)
        await asyncio.sleep(_EXTEND_EVERY)


async def extend_token(database: Database, token: Path, *, clock: Now = now) -> None:
    try:
        hash_ = hashed(read_handed_over(token))
        if await database.write(lambda connection: access_tokens.extend(connection, hash_, at=clock())):
            log.info("the first access token was extended", days=access_tokens.LONGEST)
    except (GhippoError, StartError) as error:
        log.warning("the first access token cannot be extended now", error=str(error))


def read_handed_over(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            found = file.read(4096).strip()
    except (OSError, ValueError) as error:
        raise StartError(f"{path} cannot be read: {type(error).__name__}") from None
    if len(found) < access_tokens.SHORTEST:
        raise StartError(f"what is in {path} is too short: it needs at least {access_tokens.SHORTEST} characters")
    return found


def _has_the_first_password(connection: sa.Connection) -> bool:
    admin = users.find_by_name(connection, users.ADMIN)
    return admin is not None and bool(admin.must_change_password)
