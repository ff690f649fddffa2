"""Webhooks: the receivers of bindings, and the progress of each. Functions of a connection.

A receiver needs the effective bindings above the last sequence that it acknowledged. They are the outbox: nothing is
copied, many changes of one binding while a receiver is away are one delivery, and the outbox does not grow with time.

A webhook is sent what its owner may read at the moment of the delivery. The owner is the user who created or changed it
last. The webhook of the plane's own entrance has no owner, and only the plane itself changes it: revocations would not
arrive while it is off or leads elsewhere.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from kairship.access.delivery.protocol import MAX_BYTES, BindingChanges, DeliveredBinding, SnapshotPage
from kairship.ghippo.database.schema import effective_bindings, is_active_user, refused_bindings, users, webhooks
from kairship.ghippo.errors import AlreadyExists, FailedPrecondition, NotFound, PermissionDenied
from kairship.ghippo.identifiers import new_secret
from kairship.ghippo.sealing import Sealer
from kairship.ghippo.tenancy import escalation
from kairship.ghippo.tenancy.effective import spec_of
from kairship.ghippo.urls import check_url
from kairship.rpc.calls import Caller

PLANE = "kairship"
"""The name of the webhook of the plane's own entrance."""
READ_BINDINGS, READ_GROUPS = "ghippo.bindings.get", "ghippo.groups.get"
MAX_BINDINGS = 200
_MAX_SPEC_BYTES = MAX_BYTES // 2
"""Bytes of specs in one delivery. A few bindings of groups with many members can fill one."""
_FETCH_SIZE = 20


def create(connection: sa.Connection, sealer: Sealer, *, name: str, url: str, owner: Caller) -> str:
    """Creates a webhook and returns its secret, for the only time. At first all bindings are delivered to it."""
    _check_may_own(connection, name, owner)
    check_url(url)
    secret = new_secret("ksw_")
    try:
        with connection.begin_nested():
            values = {"name": name, "url": url, "sealed_secret": sealer.seal(secret), "owner": owner.id}
            connection.execute(sa.insert(webhooks).values(values))
    except IntegrityError as error:
        raise AlreadyExists(f"there is a webhook {name} already; choose another name", field="name") from error
    return secret


def ensure_plane(connection: sa.Connection, sealer: Sealer, *, url: str, secret: str) -> None:
    """Creates or updates the webhook of the plane, with a secret that was made elsewhere."""
    check_url(url)
    row = connection.execute(sa.select(webhooks).where(webhooks.c.name == PLANE)).first()
    wanted = {"url": url, "disabled": False, "owner": ""}
    if row is None:
        connection.execute(sa.insert(webhooks).values(name=PLANE, sealed_secret=sealer.seal(secret), **wanted))
    elif sealer.open(row.sealed_secret) != secret or any(getattr(row, each) != wanted[each] for each in wanted):
        changed = sa.update(webhooks).where(webhooks.c.name == PLANE)
        connection.execute(changed.values(sealed_secret=sealer.seal(secret), **wanted))


def get(connection: sa.Connection, name: str) -> sa.Row[Any]:
    row = connection.execute(sa.select(webhooks, _pending(), _refused()).where(webhooks.c.name == name)).first()
    if row is None:
        raise NotFound(f"there is no webhook {name}")
    return row


def find(connection: sa.Connection) -> Sequence[sa.Row[Any]]:
    return connection.execute(sa.select(webhooks, _pending(), _refused()).order_by(webhooks.c.name)).all()


def update(connection: sa.Connection, name: str, *, url: str, disabled: bool, owner: Caller) -> None:
    """Changes a webhook, which belongs to the caller from then on: the caller has decided where deliveries go."""
    _check_may_own(connection, name, owner)
    check_url(url)
    get(connection, name)
    values = {"url": url, "disabled": disabled, "owner": owner.id}
    connection.execute(sa.update(webhooks).where(webhooks.c.name == name).values(values))


def delete(connection: sa.Connection, name: str) -> None:
    _check_not_plane(name)
    get(connection, name)
    connection.execute(sa.delete(webhooks).where(webhooks.c.name == name))


def next_changes(connection: sa.Connection, name: str) -> BindingChanges | None:
    """The first bindings that the receiver has not acknowledged, for one delivery; None if there are none."""
    webhook = get(connection, name)
    behind = effective_bindings.c.sequence > webhook.delivered_sequence
    bindings, _ = _batch(
        connection, webhook, sa.select(effective_bindings).where(behind).order_by(effective_bindings.c.sequence)
    )
    return BindingChanges(bindings=bindings) if bindings else None


def snapshot_page(connection: sa.Connection, name: str, *, after: str) -> SnapshotPage:
    """The bindings after a name, for one delivery. Revoked bindings are included while their tombstones are kept."""
    query = sa.select(effective_bindings).where(effective_bindings.c.name > after).order_by(effective_bindings.c.name)
    bindings, more = _batch(connection, get(connection, name), query)
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


def delivered_to_plane(connection: sa.Connection) -> int | None:
    """The last sequence that the plane's own entrance acknowledged; None if this plane has no such webhook."""
    return connection.execute(sa.select(webhooks.c.delivered_sequence).where(webhooks.c.name == PLANE)).scalar()


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


def _check_not_plane(name: str) -> None:
    if name == PLANE:
        raise FailedPrecondition(
            f"{PLANE} is the webhook of the plane's own entrance, which nobody changes; choose another name"
        )


def _check_may_own(connection: sa.Connection, name: str, owner: Caller) -> None:
    _check_not_plane(name)
    if not escalation.holds_on_platform(connection, owner, READ_BINDINGS):
        raise PermissionDenied(
            f"a webhook is sent role bindings, and you may not read them; ask an administrator for {READ_BINDINGS}"
        )


def _owner_reads(connection: sa.Connection, webhook: sa.Row[Any], permission: str) -> bool:
    active = sa.select(users.c.id).where(users.c.id == webhook.owner, is_active_user)
    owner = Caller(id=webhook.owner, name="")
    return connection.execute(active).first() is not None and escalation.holds_on_platform(
        connection, owner, permission
    )


def _batch(
    connection: sa.Connection, webhook: sa.Row[Any], query: sa.Select[Any]
) -> tuple[tuple[DeliveredBinding, ...], bool]:
    """The first of these bindings, as many as fit one delivery, and whether there may be more.

    Raises `PermissionDenied` if the owner of the webhook may not read bindings.
    """
    is_plane = webhook.name == PLANE
    if not is_plane and not _owner_reads(connection, webhook, READ_BINDINGS):
        raise PermissionDenied(
            f"the owner of this webhook may not read role bindings; let a user who has {READ_BINDINGS} change it"
        )
    names_members = is_plane or _owner_reads(connection, webhook, READ_GROUPS)
    found: list[DeliveredBinding] = []
    size = 0
    with connection.execute(query.limit(MAX_BINDINGS).execution_options(yield_per=_FETCH_SIZE)) as rows:
        for row in rows:
            size += len(row.spec)
            if found and size > _MAX_SPEC_BYTES:
                return tuple(found), True
            spec = spec_of(row)
            shown = spec if names_members else msgspec.structs.replace(spec, members=())
            found.append(DeliveredBinding(name=row.name, spec=shown))
    return tuple(found), len(found) == MAX_BINDINGS
