"""The device authorization flow (RFC 8628): a device without a browser shows a short code that a user approves.

Users type the user code, so it is short; it is valid for ten minutes and for one device, and only a signed-in user can
try a few. Anybody can begin, so places are bounded for each network, and when all are taken, a network that holds many
loses its oldest to one that asks. Functions of a connection.
"""

import secrets

import msgspec
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from kairship.ghippo.database.schema import device_logins, is_active_user, users
from kairship.ghippo.errors import FailedPrecondition, NotFound, PermissionDenied, ResourceExhausted, Unauthenticated
from kairship.ghippo.identifiers import hashed, new_secret
from kairship.process.client_network import client_network

LIFETIME = 600
INTERVAL = 5
MAX_PENDING = 1000
MAX_PENDING_OF_NETWORK = 50
# Without vowels codes do not form words; no letter looks like another.
_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"


class DeviceAuthorization(msgspec.Struct, frozen=True):
    device_code: str
    user_code: str

    def __repr__(self) -> str:
        return "DeviceAuthorization(…)"

    __str__ = __repr__


def begin(connection: sa.Connection, *, device: str, address: str, at: int) -> DeviceAuthorization:
    connection.execute(sa.delete(device_logins).where(device_logins.c.expires_at <= at))
    network = client_network(address)[:64]
    _make_room(connection, network)
    while True:
        code = "-".join("".join(secrets.choice(_LETTERS) for _ in range(4)) for _ in range(2))
        authorization = DeviceAuthorization(new_secret("ksd_"), code)
        values = {
            "device_hash": hashed(authorization.device_code),
            "user_code": code,
            "device": device[:128],
            "address": address[:64],
            "network": network,
            "expires_at": at + LIFETIME,
        }
        try:
            with connection.begin_nested():
                connection.execute(sa.insert(device_logins).values(values))
        except IntegrityError:  # another device waits with the same code
            continue
        return authorization


def _make_room(connection: sa.Connection, network: str) -> None:
    size = sa.func.count()
    by_network = sa.select(device_logins.c.network, size).group_by(device_logins.c.network).order_by(size.desc())
    pending = {row[0]: row[1] for row in connection.execute(by_network)}
    if pending.get(network, 0) >= MAX_PENDING_OF_NETWORK:
        raise ResourceExhausted(
            "too many devices of your network are waiting to sign in; finish one of them, or try again in a minute",
            retry_after=60.0,
        )
    if sum(pending.values()) >= MAX_PENDING:
        largest = sa.select(device_logins.c.device_hash).where(device_logins.c.network == next(iter(pending)))
        oldest = connection.execute(largest.order_by(device_logins.c.expires_at).limit(1)).scalar()
        connection.execute(sa.delete(device_logins).where(device_logins.c.device_hash == oldest))


def decide(connection: sa.Connection, user_code: str, *, user: str, approve: bool, at: int) -> None:
    """Approves or denies a device on behalf of a user. A code can be decided once."""
    code = user_code.strip().upper()
    done = connection.execute(
        sa.update(device_logins)
        .where(device_logins.c.user_code == code, device_logins.c.expires_at > at, device_logins.c.approved.is_(None))
        .values(approved=approve, user_id=user)
    )
    if not done.rowcount:
        raise NotFound("no device shows this code, or the code has expired; begin again on the device")


def poll(connection: sa.Connection, device_code: str, *, at: int) -> str | None:
    """The user who approved the device, returned once; None while the decision is pending."""
    row = connection.execute(
        sa.select(device_logins, is_active_user.label("active"))
        .select_from(device_logins)
        .outerjoin(users, users.c.id == device_logins.c.user_id)
        .where(device_logins.c.device_hash == hashed(device_code))
    ).first()
    if row is None or row.expires_at <= at:
        raise Unauthenticated("this sign-in has expired; begin again")
    if row.approved is None:
        if at - row.asked_at < INTERVAL:
            raise ResourceExhausted(f"poll only every {INTERVAL} seconds", retry_after=float(INTERVAL))
        connection.execute(
            sa.update(device_logins).where(device_logins.c.device_hash == row.device_hash).values(asked_at=at)
        )
        return None
    connection.execute(sa.delete(device_logins).where(device_logins.c.device_hash == row.device_hash))
    if not row.approved:
        raise PermissionDenied("the user denied this sign-in")
    if not row.active:
        raise FailedPrecondition("the user who approved this sign-in is disabled; ask an administrator")
    return str(row.user_id)
