"""Guessing passwords becomes slow: by account, whether it exists or not, and by address.

An attempt counts as failed until it has succeeded, so many at once do not slip through together.
"""

import msgspec
import sqlalchemy as sa

from kairship.ghippo.database.schema import login_failures
from kairship.ghippo.errors import TooMany


class Limit(msgspec.Struct, frozen=True):
    free: int
    """So many failures cost nothing."""
    pause: int
    """Then there is a pause, in seconds, which doubles with each further failure…"""
    longest: int
    """…up to this."""


ACCOUNT = Limit(5, 30, 900)
ADDRESS = Limit(30, 30, 900)
_FORGOTTEN_AFTER = 3600


def begin_attempt(connection: sa.Connection, *, name: str, address: str, at: int) -> None:
    """Raises `TooMany` while the account or the address is locked; otherwise counts a failure, for now."""
    keys = {_account(name): ACCOUNT, _address(address): ADDRESS}
    connection.execute(sa.delete(login_failures).where(login_failures.c.last_at < at - _FORGOTTEN_AFTER))
    found = connection.execute(sa.select(login_failures).where(login_failures.c.key.in_(keys)))
    known = {row.key: row for row in found}
    locked = max((row.locked_until for row in known.values()), default=0)
    if locked > at:
        raise TooMany(f"too many failed attempts; try again in {locked - at} seconds", retry_after=float(locked - at))
    for key, limit in keys.items():
        failures = (known[key].failures if key in known else 0) + 1
        over = failures - limit.free
        pause = min(limit.longest, limit.pause * 2 ** min(over, 16)) if over >= 0 else 0
        connection.execute(sa.delete(login_failures).where(login_failures.c.key == key))
        connection.execute(
            sa.insert(login_failures).values(key=key, failures=failures, last_at=at, locked_until=at + pause)
        )


def succeeded(connection: sa.Connection, *, name: str, address: str) -> None:
    """The account starts anew. The address takes back this one attempt: it may have guessed at others before."""
    connection.execute(sa.delete(login_failures).where(login_failures.c.key == _account(name)))
    connection.execute(
        sa.update(login_failures)
        .where(login_failures.c.key == _address(address))
        .values(failures=login_failures.c.failures - 1, locked_until=0)
    )


def _account(name: str) -> str:
    return f"account:{name[:254]}"


def _address(address: str) -> str:
    return f"address:{address[:64]}"
