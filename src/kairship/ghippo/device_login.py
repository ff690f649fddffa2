"""Sign-in of a device without a browser (RFC 8628): it shows a short code, and a person approves it elsewhere.

The short code is typed by people, so it is short; it is good for ten minutes, for one device, and only somebody who is
signed in can try one. Functions of a connection.
"""

import secrets

import msgspec
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from kairship.ghippo.database.schema import device_logins, users
from kairship.ghippo.errors import NotFound, Precondition, Refused, TooMany, Unauthenticated
from kairship.ghippo.identifiers import hashed, new_secret

LIFETIME = 600
INTERVAL = 5
MOST = 1000
# No vowels, so no words; no characters that look like others.
_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"


class Begun(msgspec.Struct, frozen=True):
    device_code: str
    user_code: str

    def __repr__(self) -> str:
        return "Begun(…)"

    __str__ = __repr__


def begin(connection: sa.Connection, *, device: str, address: str, at: int) -> Begun:
    connection.execute(sa.delete(device_logins).where(device_logins.c.expires_at <= at))
    if connection.execute(sa.select(sa.func.count()).select_from(device_logins)).scalar_one() >= MOST:
        raise TooMany("many devices are waiting to sign in; try again in a minute", retry_after=60.0)
    while True:
        code = "-".join("".join(secrets.choice(_LETTERS) for _ in range(4)) for _ in range(2))
        begun = Begun(new_secret("ksd_"), code)
        values = {
            "device_hash": hashed(begun.device_code),
            "user_code": code,
            "device": device[:128],
            "address": address[:64],
            "expires_at": at + LIFETIME,
        }
        try:
            with connection.begin_nested():
                connection.execute(sa.insert(device_logins).values(values))
        except IntegrityError:  # somebody else waits with the same code
            continue
        return begun


def answer(connection: sa.Connection, user_code: str, *, user: str, approve: bool, at: int) -> None:
    """What a person says to it. A code is answered once."""
    code = user_code.strip().upper()
    done = connection.execute(
        sa.update(device_logins)
        .where(device_logins.c.user_code == code, device_logins.c.expires_at > at, device_logins.c.approved.is_(None))
        .values(approved=approve, user_id=user)
    )
    if not done.rowcount:
        raise NotFound("no device shows this code, or it has expired; begin again on the device")


def ask(connection: sa.Connection, device_code: str, *, at: int) -> str | None:
    """The user whom the device may act as, once; None while nobody has answered."""
    row = connection.execute(
        sa.select(device_logins, users.c.disabled)
        .outerjoin(users, users.c.id == device_logins.c.user_id)
        .where(device_logins.c.device_hash == hashed(device_code))
    ).first()
    if row is None or row.expires_at <= at:
        raise Unauthenticated("this sign-in has expired; begin again")
    if row.approved is None:
        if at - row.asked_at < INTERVAL:
            raise TooMany(f"ask every {INTERVAL} seconds", retry_after=float(INTERVAL))
        connection.execute(
            sa.update(device_logins).where(device_logins.c.device_hash == row.device_hash).values(asked_at=at)
        )
        return None
    connection.execute(sa.delete(device_logins).where(device_logins.c.device_hash == row.device_hash))
    if not row.approved:
        raise Refused("the sign-in was refused")
    if row.disabled is not False:
        raise Precondition("the user who approved this cannot sign in any more")
    return str(row.user_id)
