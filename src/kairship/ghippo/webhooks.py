"""Webhooks: receivers of bindings, and how far each of them is. Functions of a connection.

A receiver needs the effective bindings above the last sequence that it acknowledged. That is the outbox: nothing is
copied, many changes of one binding while a receiver is away are one delivery, and memory does not grow with time.
"""

import ipaddress
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from kairship.access.delivery import LARGEST, Changes, Delivered, Everything
from kairship.ghippo.database.schema import effective_bindings, refused_bindings, webhooks
from kairship.ghippo.effective import spec_of
from kairship.ghippo.errors import Exists, Invalid, NotFound
from kairship.ghippo.identifiers import new_secret
from kairship.ghippo.sealing import Sealer

BATCH = 200
_BYTES = LARGEST // 2
"""Of bindings in one delivery. A group can have so many members that a few of them fill one."""
_READ_AT_ONCE = 20


def create(connection: sa.Connection, sealer: Sealer, *, name: str, url: str) -> str:
    """Returns the secret, for the only time. Everything that there is is delivered first."""
    check_url(url)
    secret = new_secret("ksw_")
    try:
        with connection.begin_nested():
            connection.execute(sa.insert(webhooks).values(name=name, url=url, sealed_secret=sealer.seal(secret)))
    except IntegrityError as error:
        raise Exists(f"there is a webhook {name} already; choose another name", field="name") from error
    return secret


def ensure(connection: sa.Connection, sealer: Sealer, *, name: str, url: str, secret: str) -> None:
    """A webhook whose secret somebody else has made. What somebody has disabled stays so."""
    check_url(url)
    row = connection.execute(sa.select(webhooks).where(webhooks.c.name == name)).first()
    if row is None:
        values = {"name": name, "url": url, "sealed_secret": sealer.seal(secret)}
        connection.execute(sa.insert(webhooks).values(values))
    elif row.url != url or sealer.open(row.sealed_secret) != secret:
        changed = sa.update(webhooks).where(webhooks.c.name == name)
        connection.execute(changed.values(url=url, sealed_secret=sealer.seal(secret)))


def check_url(url: str) -> None:
    """Bindings say who may do what: they travel encrypted, or not at all."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise Invalid("this is not an address", field="url") from error
    if not host or port == 0 or parts.username is not None or parts.fragment or not url.isprintable() or " " in url:
        raise Invalid("give an address such as https://example.com/bindings, without user or fragment", field="url")
    if parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(host)):
        return
    raise Invalid("the address must begin with https:// (http:// is for this machine only)", field="url")


def get(connection: sa.Connection, name: str) -> sa.Row[Any]:
    row = connection.execute(sa.select(webhooks, _pending(), _refused()).where(webhooks.c.name == name)).first()
    if row is None:
        raise NotFound(f"there is no webhook {name}")
    return row


def find(connection: sa.Connection) -> Sequence[sa.Row[Any]]:
    return connection.execute(sa.select(webhooks, _pending(), _refused()).order_by(webhooks.c.name)).all()


def update(connection: sa.Connection, name: str, *, url: str, disabled: bool) -> None:
    check_url(url)
    get(connection, name)
    connection.execute(sa.update(webhooks).where(webhooks.c.name == name).values(url=url, disabled=disabled))


def delete(connection: sa.Connection, name: str) -> None:
    get(connection, name)
    connection.execute(sa.delete(webhooks).where(webhooks.c.name == name))


def next_changes(connection: sa.Connection, name: str) -> Changes | None:
    """What the receiver has not acknowledged, as much as one delivery takes; None if there is nothing."""
    behind = effective_bindings.c.sequence > get(connection, name).delivered_sequence
    bindings, _ = _batch(
        connection, sa.select(effective_bindings).where(behind).order_by(effective_bindings.c.sequence)
    )
    return Changes(bindings=bindings) if bindings else None


def page_of_everything(connection: sa.Connection, *, after: str) -> Everything:
    """Everything behind a name, as much as one delivery takes. Withdrawn bindings are told of as long as we know."""
    query = sa.select(effective_bindings).where(effective_bindings.c.name > after).order_by(effective_bindings.c.name)
    bindings, more = _batch(connection, query)
    sequence = connection.execute(sa.select(sa.func.max(effective_bindings.c.sequence))).scalar() or 0
    return Everything(bindings=bindings, after=after, upto=bindings[-1].name if more else None, sequence=sequence)


def acknowledge(connection: sa.Connection, *, name: str, sequence: int) -> None:
    """Never backwards: two replicas may deliver the same."""
    connection.execute(
        sa.update(webhooks)
        .where(webhooks.c.name == name)
        .values(
            delivered_sequence=sa.case(
                (webhooks.c.delivered_sequence < sequence, sequence), else_=webhooks.c.delivered_sequence
            ),
            problem="",
        )
    )


def note_reconciled(connection: sa.Connection, name: str, *, at: int) -> None:
    connection.execute(sa.update(webhooks).where(webhooks.c.name == name).values(reconciled_at=at, problem=""))


def note_problem(connection: sa.Connection, name: str, problem: str) -> None:
    connection.execute(sa.update(webhooks).where(webhooks.c.name == name).values(problem=problem))


def _pending() -> sa.Label[int]:
    behind = effective_bindings.c.sequence > webhooks.c.delivered_sequence
    return sa.select(sa.func.count()).where(behind).correlate(webhooks).scalar_subquery().label("pending")


def _refused() -> sa.Label[int]:
    own = refused_bindings.c.webhook == webhooks.c.name
    return sa.select(sa.func.count()).where(own).correlate(webhooks).scalar_subquery().label("refused")


def _batch(connection: sa.Connection, query: sa.Select[Any]) -> tuple[tuple[Delivered, ...], bool]:
    """The first of these bindings, as many as one delivery takes, and whether there may be more."""
    found: list[Delivered] = []
    size = 0
    with connection.execute(query.limit(BATCH).execution_options(yield_per=_READ_AT_ONCE)) as rows:
        for row in rows:
            size += len(row.spec)
            if found and size > _BYTES:
                return tuple(found), True
            found.append(Delivered(name=row.name, spec=spec_of(row)))
    return tuple(found), len(found) == BATCH


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
