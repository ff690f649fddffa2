"""Bindings that a receiver has rejected, because it can never store them as they are. Functions of a connection.

A rejected binding must not hold up others, least of all a revocation. So it counts as delivered, and is sent again when
it changes and with every snapshot; its row is deleted once the receiver stores it.
"""

from collections.abc import Sequence

import sqlalchemy as sa

from kairship.access.delivery.protocol import DeliveredBinding, Delivery, RejectedBinding, SnapshotPage
from kairship.ghippo.audit import AuditLog, Entry
from kairship.ghippo.database.schema import effective_bindings, refused_bindings
from kairship.rpc.errors import Code

ACTION = "ghippo.bindings.deliver"


def record(
    connection: sa.Connection,
    audit: AuditLog,
    *,
    webhook: str,
    delivery: Delivery,
    refused: Sequence[RejectedBinding],
    at: int,
) -> Sequence[RejectedBinding]:
    """Replaces the recorded rejections of the delivered bindings, and returns those that are new."""
    sent = {(each.name, each.spec.sequence): each for each in delivery.bindings}
    refused = [each for each in refused if (each.name, each.sequence) in sent]
    of_webhook = refused_bindings.c.webhook == webhook
    known = {(row.name, row.sequence) for row in connection.execute(sa.select(refused_bindings).where(of_webhook))}
    connection.execute(sa.delete(refused_bindings).where(of_webhook, _within(delivery)))
    for each in refused:
        connection.execute(
            sa.insert(refused_bindings).values(
                webhook=webhook, name=each.name, sequence=each.sequence, reason=each.reason, at=at
            )
        )
    new = [each for each in refused if (each.name, each.sequence) not in known]
    audit.append(connection, [_entry(webhook, sent[each.name, each.sequence], each, at) for each in new])
    return new


def count(connection: sa.Connection, webhook: str) -> int:
    query = sa.select(sa.func.count()).select_from(refused_bindings).where(refused_bindings.c.webhook == webhook)
    return int(connection.execute(query).scalar_one())


def problem_of(connection: sa.Connection, binding: str) -> str:
    """Why a binding is not in effect everywhere; empty if no receiver has rejected any of its effective bindings."""
    query = (
        sa.select(refused_bindings.c.webhook, refused_bindings.c.reason)
        .join(effective_bindings, effective_bindings.c.name == refused_bindings.c.name)
        .where(effective_bindings.c.binding_id == binding)
        .order_by(refused_bindings.c.webhook, refused_bindings.c.name)
        .limit(1)
    )
    row = connection.execute(query).first()
    return f"{row.webhook} cannot store it: {row.reason}" if row is not None else ""


def _within(delivery: Delivery) -> sa.ColumnElement[bool]:
    name = refused_bindings.c.name
    if not isinstance(delivery, SnapshotPage):
        return name.in_([each.name for each in delivery.bindings])
    upto = sa.true() if delivery.upto is None else name <= delivery.upto
    return sa.and_(name > delivery.after, upto)


def _entry(webhook: str, delivered: DeliveredBinding, refused: RejectedBinding, at: int) -> Entry:
    scope = delivered.spec.scope
    return Entry(
        at=at,
        action=ACTION,
        instance=scope.instance or "",
        namespace=scope.namespace or "",
        object=delivered.name,
        outcome=Code.INVALID_ARGUMENT.value,
        message=f"{webhook} cannot store it: {refused.reason}",
    )
