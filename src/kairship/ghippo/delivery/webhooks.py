"""Webhooks: the receivers of bindings, and the progress of each. Functions of a connection.

A receiver needs the effective bindings above the last sequence that it acknowledged. They are the outbox: nothing is
copied, many changes of one binding while a receiver is away are one delivery, and the outbox does not grow with time.
"""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from kairship.access.delivery.protocol import MAX_BYTES, BindingChanges, DeliveredBinding, SnapshotPage
from kairship.ghippo.database.schema import effective_bindings, refused_bindings, webhooks
from kairship.ghippo.errors import AlreadyExists, NotFound
from kairship.ghippo.identifiers import new_secret
from kairship.ghippo.sealing import Sealer
from kairship.ghippo.tenancy.effective import spec_of
from kairship.ghippo.urls import check_url

MAX_BINDINGS = 200
_MAX_SPEC_BYTES = MAX_BYTES // 2
"""Bytes of specs in one delivery. A few bindings of groups with many members can fill one."""
_FETCH_SIZE = 20


def create(connection: sa.Connection, sealer: Sealer, *, name: str, url: str) -> str:
    """Creates a webhook and returns its secret, for the only time. At first all bindings are delivered to it."""
    check_url(url)
    secret = new_secret("ksw_")
    try:
        with connection.begin_nested():
            connection.execute(sa.insert(webhooks).values(name=name, url=url, sealed_secret=sealer.seal(secret)))
    except IntegrityError as error:
        raise AlreadyExists(f"there is a webhook {name} already; choose another name", field="name") from error
    return secret


def ensure(connection: sa.Connection, sealer: Sealer, *, name: str, url: str, secret: str) -> None:
    """Creates or updates a webhook with a secret that was made elsewhere. A disabled webhook stays disabled."""
    check_url(url)
    row = connection.execute(sa.select(webhooks).where(webhooks.c.name == name)).first()
    if row is None:
        values = {"name": name, "url": url, "sealed_secret": sealer.seal(secret)}
        connection.execute(sa.insert(webhooks).values(values))
    elif row.url != url or sealer.open(row.sealed_secret) != secret:
        changed = sa.update(webhooks).where(webhooks.c.name == name)
        connection.execute(changed.values(url=url, sealed_secret=sealer.seal(secret)))


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


def next_changes(connection: sa.Connection, name: str) -> BindingChanges | None:
    """The first bindings that the receiver has not acknowledged, for one delivery; None if there are none."""
    behind = effective_bindings.c.sequence > get(connection, name).delivered_sequence
    bindings, _ = _batch(
        connection, sa.select(effective_bindings).where(behind).order_by(effective_bindings.c.sequence)
    )
    return BindingChanges(bindings=bindings) if bindings else None


def snapshot_page(connection: sa.Connection, *, after: str) -> SnapshotPage:
    """The bindings after a name, for one delivery. Revoked bindings are included while their tombstones are kept."""
    query = sa.select(effective_bindings).where(effective_bindings.c.name > after).order_by(effective_bindings.c.name)
    bindings, more = _batch(connection, query)
    sequence = connection.execute(sa.select(sa.func.max(effective_bindings.c.sequence))).scalar() or 0
    return SnapshotPage(bindings=bindings, after=after, upto=bindings[-1].name if more else None, sequence=sequence)


def acknowledge(connection: sa.Connection, *, name: str, sequence: int) -> None:
    """Raises the acknowledged sequence, never lowers it: two replicas may deliver the same."""
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


def record_reconciled(connection: sa.Connection, name: str, *, at: int) -> None:
    connection.execute(sa.update(webhooks).where(webhooks.c.name == name).values(reconciled_at=at, problem=""))


def record_problem(connection: sa.Connection, name: str, problem: str) -> None:
    connection.execute(sa.update(webhooks).where(webhooks.c.name == name).values(problem=problem))


def _pending() -> sa.Label[int]:
    behind = effective_bindings.c.sequence > webhooks.c.delivered_sequence
    return sa.select(sa.func.count()).where(behind).correlate(webhooks).scalar_subquery().label("pending")


def _refused() -> sa.Label[int]:
    own = refused_bindings.c.webhook == webhooks.c.name
    return sa.select(sa.func.count()).where(own).correlate(webhooks).scalar_subquery().label("refused")


def _batch(connection: sa.Connection, query: sa.Select[Any]) -> tuple[tuple[DeliveredBinding, ...], bool]:
    """The first of these bindings, as many as fit one delivery, and whether there may be more."""
    found: list[DeliveredBinding] = []
    size = 0
    with connection.execute(query.limit(MAX_BINDINGS).execution_options(yield_per=_FETCH_SIZE)) as rows:
        for row in rows:
            size += len(row.spec)
            if found and size > _MAX_SPEC_BYTES:
                return tuple(found), True
            found.append(DeliveredBinding(name=row.name, spec=spec_of(row)))
    return tuple(found), len(found) == MAX_BINDINGS
