"""From what was seen of a cluster to conditions and a phase. Pure functions."""

import datetime as dt
from collections.abc import Iterable, Mapping

from kairship.instances.pool_health import Health, Reason
from kairship.kpanda.collector import Progress, Stage
from kairship.kpanda.credentials.renewing import Outlook
from kairship.kpanda.status.look import Seen
from kairship.kpanda.verification import ENDS_SOON
from kairship.kube import Forbidden, Unauthorized
from kairship.resources import (
    ClusterCondition,
    ClusterPhase,
    ClusterReason,
    ClusterStatus,
    Condition,
    Finding,
    find_condition,
    is_true,
)

_C, _R = ClusterCondition, ClusterReason

_UNREACHED = {
    Reason.TIMED_OUT: _R.TIMED_OUT,
    Reason.CERTIFICATE_REJECTED: _R.CERTIFICATE_REJECTED,
    Reason.ADDRESS_REFUSED: _R.ADDRESS_REFUSED,
}
_TOO_EARLY = frozenset({Reason.CONNECTING, Reason.NOT_READ_YET, Reason.UNKNOWN})
_NO_WAY = frozenset({Reason.SECRET_MISSING, Reason.NO_CREDENTIALS, Reason.KUBECONFIG_REFUSED, Reason.SECRET_UNREADABLE})
_COLLECTED: Mapping[Stage, ClusterReason] = {
    Stage.CURRENT: _R.CURRENT,
    Stage.LISTING: _R.LISTING,
    Stage.BEHIND: _R.BEHIND,
    Stage.INTERRUPTED: _R.INTERRUPTED,
    Stage.STORE_FAILED: _R.STORE_FAILED,
}


def reachable(health: Health) -> Finding:
    """The pool has waited long enough before it calls a cluster unreachable."""
    if health.reachable or health.reason is Reason.CREDENTIAL_REJECTED:
        return Finding(_C.REACHABLE, "True", _R.ANSWERS)
    if health.reason in _TOO_EARLY:
        return Finding(_C.REACHABLE, "Unknown", _R.CONNECT_FAILED, health.message)
    if health.reason in _NO_WAY:
        return Finding(_C.REACHABLE, "Unknown", _R.CONNECT_FAILED, "there is no credential to ask it with")
    return Finding(_C.REACHABLE, "False", _UNREACHED.get(health.reason, _R.CONNECT_FAILED), health.message)


def credentials(
    seen: Seen, status: ClusterStatus, *, duplicate_of: str, outlook: Outlook | None = None, now: dt.datetime
) -> Finding | None:
    """None if nothing new is known: the cluster could not be asked, and this very credential was verified before."""
    kind = _C.CREDENTIALS_VALID
    ended = seen.expires_at is not None and seen.expires_at <= now
    if seen.missing:
        return Finding(kind, "False", _R.SECRET_MISSING, seen.missing)
    if seen.unusable:
        return Finding(kind, "False", _R.KUBECONFIG_REFUSED, seen.unusable)
    if ended and (seen.error is None or isinstance(seen.error, Unauthorized)):
        return Finding(kind, "False", _R.EXPIRED, f"it ended on {_date(seen.expires_at)}: give the cluster a new one")
    if isinstance(seen.error, Unauthorized):
        return Finding(kind, "False", _R.REJECTED, "the cluster does not accept it: give the cluster a new one")
    if isinstance(seen.error, Forbidden) and not seen.id:
        return Finding(kind, "False", _R.RIGHTS_MISSING, "it may not read namespace kube-system: grant it that right")
    if not seen.id:
        verified = status.credentials is not None and status.credentials.resource_version == seen.secret_version
        return None if verified else Finding(kind, "Unknown", _R.NOT_VERIFIED, str(seen.error))
    if status.id and status.id != seen.id:
        return Finding(
            kind,
            "False",
            _R.OTHER_CLUSTER,
            "it opens another cluster than the one that was registered: give it a credential of that one",
        )
    if duplicate_of:
        return Finding(kind, "False", _R.DUPLICATE, f"the cluster is registered already, as {duplicate_of}")
    return _valid(seen.expires_at, outlook, now)


def _valid(expires_at: dt.datetime | None, outlook: Outlook | None, now: dt.datetime) -> Finding:
    kind = _C.CREDENTIALS_VALID
    if expires_at is not None and outlook is not None and not outlook.problem:
        return Finding(kind, "True", _R.VERIFIED, f"it ends on {_date(expires_at)} and is renewed before")
    if expires_at is not None and outlook is not None:
        message = f"it ends on {_date(expires_at)} and could not be renewed: {outlook.problem}, or replace it before"
        return Finding(kind, "True", _R.EXPIRING, message)
    if expires_at is not None and expires_at - now < ENDS_SOON:
        return Finding(kind, "True", _R.EXPIRING, f"it ends on {_date(expires_at)}: replace it before")
    return Finding(kind, "True", _R.VERIFIED)


def collected(progress: Progress) -> Finding:
    current = progress.stage is Stage.CURRENT
    return Finding(_C.COLLECTED, "True" if current else "False", _COLLECTED[progress.stage], progress.message)


def readiness(conditions: Iterable[Condition], *, deleting: bool) -> Finding:
    """The summary of all other conditions, as they are written."""
    conditions = tuple(conditions)
    if deleting:
        return Finding(_C.READY, "False", _R.BEING_DELETED)
    valid = find_condition(conditions, _C.CREDENTIALS_VALID)
    if valid is not None and valid.status == "False":
        return Finding(_C.READY, "False", _R.NOT_AUTHORIZED, valid.message)
    reached = find_condition(conditions, _C.REACHABLE)
    if reached is None or reached.status != "True":
        unknown = reached is None or reached.status == "Unknown"
        message = reached.message if reached else ""
        return Finding(_C.READY, "Unknown" if unknown else "False", _R.NOT_REACHABLE, message)
    if valid is None or valid.status != "True":
        return Finding(_C.READY, "Unknown", _R.NOT_AUTHORIZED, valid.message if valid else "")
    if not is_true(conditions, _C.COLLECTED):
        behind = find_condition(conditions, _C.COLLECTED)
        return Finding(_C.READY, "True", _R.INDEX_BEHIND, behind.message if behind else "")
    return Finding(_C.READY, "True", _R.AS_EXPECTED)


def phase_of(conditions: Iterable[Condition], status: ClusterStatus, *, secret: str, deleting: bool) -> ClusterPhase:
    """What the cluster is doing, in one word. `secret` is the version of its Secret."""
    conditions = tuple(conditions)
    valid, reached = (find_condition(conditions, kind) for kind in (_C.CREDENTIALS_VALID, _C.REACHABLE))
    if deleting:
        return ClusterPhase.DELETING
    if valid is not None and valid.status == "False":
        return ClusterPhase.FAILED
    if reached is not None and reached.status == "False":
        return ClusterPhase.UNKNOWN
    if status.credentials is None:
        return ClusterPhase.CREATING
    if secret != status.credentials.resource_version:
        return ClusterPhase.UPDATING
    return ClusterPhase.RUNNING if is_true(conditions, _C.REACHABLE) else ClusterPhase.UNKNOWN


def _date(time: dt.datetime | None) -> str:
    return f"{time:%Y-%m-%d %H:%M} UTC" if time else ""
