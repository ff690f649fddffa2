"""Derives the conditions and the phase of a cluster from what is known of it. Pure functions."""

import datetime as dt
from collections.abc import Iterable, Mapping

from kairship.instances.pool.health import Health, Reason
from kairship.kpanda.collector import Progress, Stage
from kairship.kpanda.credentials.renewal import RenewalStatus
from kairship.kpanda.status.probe import ProbeResult
from kairship.kpanda.verification import EXPIRES_SOON
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
    Stage.LIMITED: _R.LIMIT_REACHED,
    Stage.STORE_FAILED: _R.STORE_FAILED,
}


def reachable(health: Health) -> Finding:
    """The condition Reachable. The pool has waited long enough before it reports a cluster as unreachable."""
    if health.reachable or health.reason is Reason.CREDENTIAL_REJECTED:
        return Finding(_C.REACHABLE, "True", _R.ANSWERS)
    if health.reason in _TOO_EARLY:
        return Finding(_C.REACHABLE, "Unknown", _R.CONNECT_FAILED, health.message)
    if health.reason in _NO_WAY:
        return Finding(
            _C.REACHABLE,
            "Unknown",
            _R.CONNECT_FAILED,
            "there is no usable credential for the cluster: see the condition CredentialsValid",
        )
    return Finding(_C.REACHABLE, "False", _UNREACHED.get(health.reason, _R.CONNECT_FAILED), health.message)


def credentials(
    found: ProbeResult,
    status: ClusterStatus,
    *,
    duplicate_of: str,
    renewal_status: RenewalStatus | None = None,
    now: dt.datetime,
) -> Finding | None:
    """The condition CredentialsValid; None if the cluster did not answer and this credential was verified before."""
    kind = _C.CREDENTIALS_VALID
    ended = found.expires_at is not None and found.expires_at <= now
    if found.missing:
        return Finding(kind, "False", _R.SECRET_MISSING, found.missing)
    if found.unusable:
        return Finding(kind, "False", _R.KUBECONFIG_REFUSED, found.unusable)
    if ended and (found.error is None or isinstance(found.error, Unauthorized)):
        return Finding(
            kind, "False", _R.EXPIRED, f"the credential ended on {_date(found.expires_at)}: give the cluster a new one"
        )
    if isinstance(found.error, Unauthorized):
        return Finding(
            kind, "False", _R.REJECTED, "the cluster does not accept the credential: give the cluster a new one"
        )
    if isinstance(found.error, Forbidden) and not found.id:
        return Finding(
            kind,
            "False",
            _R.RIGHTS_MISSING,
            "the credential may not read the namespace kube-system: grant it `get` on namespaces in the cluster",
        )
    if not found.id:
        verified = status.credentials is not None and status.credentials.resource_version == found.secret_version
        return None if verified else Finding(kind, "Unknown", _R.NOT_VERIFIED, str(found.error))
    if status.id and status.id != found.id:
        return Finding(
            kind,
            "False",
            _R.OTHER_CLUSTER,
            "the credential opens another cluster than the one that was registered: give it a credential of that one",
        )
    if duplicate_of:
        return Finding(kind, "False", _R.DUPLICATE, f"the cluster is registered already, as {duplicate_of}")
    return _valid(found.expires_at, renewal_status, now)


def _valid(expires_at: dt.datetime | None, renewal_status: RenewalStatus | None, now: dt.datetime) -> Finding:
    kind = _C.CREDENTIALS_VALID
    if expires_at is not None and renewal_status is not None and not renewal_status.problem:
        return Finding(kind, "True", _R.VERIFIED, f"the credential ends on {_date(expires_at)} and is renewed before")
    if expires_at is not None and renewal_status is not None:
        message = (
            f"the credential ends on {_date(expires_at)} and could not be renewed: {renewal_status.problem}, or "
            "replace it before"
        )
        return Finding(kind, "True", _R.EXPIRING, message)
    if expires_at is not None and expires_at - now < EXPIRES_SOON:
        return Finding(kind, "True", _R.EXPIRING, f"the credential ends on {_date(expires_at)}: replace it before")
    return Finding(kind, "True", _R.VERIFIED)


def collected(progress: Progress) -> Finding:
    """The condition Collected."""
    current = progress.stage is Stage.CURRENT
    return Finding(_C.COLLECTED, "True" if current else "False", _COLLECTED[progress.stage], progress.message)


def readiness(conditions: Iterable[Condition], *, deleting: bool) -> Finding:
    """The condition Ready, which sums up all other conditions."""
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
    """The phase of the cluster. `secret` is the resourceVersion of its Secret."""
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
