"""Lockout: slows down guessing of passwords, per account (existing or not) and per client network, and of user codes.

An attempt counts as failed until it has succeeded, so that many concurrent attempts do not slip through together.
"""

import msgspec
import sqlalchemy as sa

from kairship.ghippo.database.schema import login_failures
from kairship.ghippo.errors import ResourceExhausted
from kairship.process.client_network import client_network


class Limit(msgspec.Struct, frozen=True):
    free_failures: int
    """Failures without a pause."""
    pause: int
    """Seconds of the first pause, which doubles with each further failure."""
    max_pause: int
    """Seconds of the longest pause."""


ACCOUNT = Limit(5, 30, 900)
ADDRESS = Limit(30, 30, 900)
CODES = Limit(5, 30, 900)
"""User codes of devices that one user tries."""
_FORGOTTEN_AFTER = 3600


def begin_attempt(connection: sa.Connection, *, name: str, address: str, at: int) -> None:
    """Counts a failure, which `record_success` takes back. Raises `ResourceExhausted` while either is locked."""
    _begin(connection, {_account(name): ACCOUNT, _address(address): ADDRESS}, at=at)


def begin_code_attempt(connection: sa.Connection, *, user: str, at: int) -> None:
    """Counts a wrong user code, which `record_code_success` takes back."""
    _begin(connection, {_codes(user): CODES}, at=at)


def record_code_success(connection: sa.Connection, *, user: str) -> None:
    connection.execute(sa.delete(login_failures).where(login_failures.c.key == _codes(user)))


def _begin(connection: sa.Connection, keys: dict[str, Limit], *, at: int) -> None:
    connection.execute(sa.delete(login_failures).where(login_failures.c.last_at < at - _FORGOTTEN_AFTER))
    found = connection.execute(sa.select(login_failures).where(login_failures.c.key.in_(keys)))
    known = {row.key: row for row in found}
    locked = max((row.locked_until for row in known.values()), default=0)
    if locked > at:
        raise ResourceExhausted(
            f"too many failed attempts; try again in {locked - at} seconds", retry_after=float(locked - at)
        )
    for key, limit in keys.items():
        failures = (known[key].failures if key in known else 0) + 1
        over = failures - limit.free_failures
        pause = min(limit.max_pause, limit.pause * 2 ** min(over, 16)) if over >= 0 else 0
        connection.execute(sa.delete(login_failures).where(login_failures.c.key == key))
        connection.execute(
            sa.insert(login_failures).values(key=key, failures=failures, last_at=at, locked_until=at + pause)
        )


def record_success(connection: sa.Connection, *, name: str, address: str) -> None:
    """Resets the account. Only this attempt is taken off the address, which may have guessed at other accounts."""
    connection.execute(sa.delete(login_failures).where(login_failures.c.key == _account(name)))
    connection.execute(
        sa.update(login_failures)
        .where(login_failures.c.key == _address(address))
        .values(failures=login_failures.c.failures - 1, locked_until=0)
    )


def _account(name: str) -> str:
    return f"account:{name[:254]}"


def _address(address: str) -> str:
    return f"address:{client_network(address)[:64]}"


def _codes(user: str) -> str:
    return f"codes:{user}"
