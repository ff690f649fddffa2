"""The conditions, phase and status that follow from a probe of a cluster."""

import datetime as dt
from typing import Any

import pytest
from support.reconcile import FakeClock

from kairship.instances.pool.health import Health, Reason, TargetKind
from kairship.kpanda.collector import Progress, Stage
from kairship.kpanda.credentials.renewal import RenewalStatus
from kairship.kpanda.status import findings
from kairship.kpanda.status.composer import Composer
from kairship.kpanda.status.probe import ProbeResult
from kairship.kube import ConnectFailed, Forbidden, Unauthorized
from kairship.resources import ClusterPhase, ClusterSpec, ClusterStatus, SecretReference, find_condition
from kairship.resources.cluster import ClusterCredentials
from kairship.resources.cluster_conditions import ClusterCondition
from kairship.rpc.resource_cache import SeenCluster, SeenMetadata

NOW = dt.datetime(2027, 1, 1, tzinfo=dt.UTC)
CURRENT = Progress(stage=Stage.CURRENT, kinds=50)
VERIFIED = ClusterCredentials(resource_version="7", verified_at=NOW)
GONE = ConnectFailed("gone")
REJECTED, LACKING = Unauthorized(status=401), Forbidden(status=403)


def health(reason: Reason) -> Health:
    reachable = reason is Reason.ANSWERS
    return Health(kind=TargetKind.CLUSTER, name="c", reachable=reachable, reason=reason, since=NOW, message="why")


def seen(**fields: Any) -> ProbeResult:
    return ProbeResult(**{"secret_version": "7", "endpoint": "https://x", "id": "id-1", **fields})


@pytest.mark.parametrize(
    ("found", "status", "reason"),
    [
        (seen(), "True", "Verified"),
        (seen(expires_at=NOW + dt.timedelta(days=3)), "True", "Expiring"),
        (seen(expires_at=NOW - dt.timedelta(seconds=1)), "False", "Expired"),
        (seen(id="", error=REJECTED), "False", "Rejected"),
        (seen(id="", error=REJECTED, expires_at=NOW - dt.timedelta(days=1)), "False", "Expired"),
        (seen(id="", error=LACKING), "False", "RightsMissing"),
        (seen(id="id-2"), "False", "OtherCluster"),
        (ProbeResult(missing="there is none"), "False", "SecretMissing"),
        (ProbeResult(unusable="exec"), "False", "KubeconfigRefused"),
        (seen(id="", error=GONE, secret_version="8"), "Unknown", "NotVerified"),
    ],
)
def test_credentials(found: ProbeResult, status: str, reason: str) -> None:
    before = ClusterStatus(id="id-1", credentials=VERIFIED)
    finding = findings.credentials(found, before, duplicate_of="", now=NOW)
    assert finding is not None
    assert (finding.status, finding.reason) == (status, reason)


@pytest.mark.parametrize(
    ("renewal_status", "reason", "message"),
    [
        (RenewalStatus(), "Verified", "ends on 2027-01-04 00:00 UTC and is renewed before"),
        (RenewalStatus("it may not"), "Expiring", "ends on 2027-01-04 00:00 UTC and could not be renewed: it may not"),
        (None, "Expiring", "ends on 2027-01-04 00:00 UTC: replace it before"),
    ],
)
def test_the_end_of_a_credential_is_told_with_what_becomes_of_it(
    renewal_status: RenewalStatus | None, reason: str, message: str
) -> None:
    found = seen(expires_at=NOW + dt.timedelta(days=3))
    finding = findings.credentials(found, ClusterStatus(), duplicate_of="", renewal_status=renewal_status, now=NOW)
    assert finding is not None
    assert (finding.status, finding.reason) == ("True", reason)
    assert message in finding.message


def test_what_was_verified_stays_so_while_the_cluster_cannot_be_asked() -> None:
    before = ClusterStatus(id="id-1", credentials=VERIFIED)
    assert findings.credentials(seen(id="", error=GONE), before, duplicate_of="", now=NOW) is None


def test_a_cluster_that_is_known_already_is_told_so() -> None:
    finding = findings.credentials(seen(), ClusterStatus(), duplicate_of="first", now=NOW)
    assert finding is not None
    assert (finding.status, finding.reason) == ("False", "Duplicate")
    assert "first" in finding.message


@pytest.mark.parametrize(
    ("reason", "status", "expected"),
    [
        (Reason.ANSWERS, "True", "Answers"),
        (Reason.CREDENTIAL_REJECTED, "True", "Answers"),
        (Reason.TIMED_OUT, "False", "TimedOut"),
        (Reason.ADDRESS_REFUSED, "False", "AddressRefused"),
        (Reason.CERTIFICATE_REJECTED, "False", "CertificateRejected"),
        (Reason.BAD_ANSWER, "False", "ConnectFailed"),
        (Reason.CONNECTING, "Unknown", "ConnectFailed"),
        (Reason.SECRET_MISSING, "Unknown", "ConnectFailed"),
    ],
)
def test_reachability(reason: Reason, status: str, expected: str) -> None:
    finding = findings.reachable(health(reason))
    assert (finding.status, finding.reason) == (status, expected)


def composed(
    found: ProbeResult, reason: Reason = Reason.ANSWERS, *, before: ClusterStatus | None = None, deleting: bool = False
) -> ClusterStatus:
    cluster = SeenCluster(
        metadata=SeenMetadata(name="c", uid="u", deletion_timestamp="2027-01-01T00:00:00Z" if deleting else None),
        spec=ClusterSpec(credentials=SecretReference(name="s")),
        status=before or ClusterStatus(),
    )
    composer = Composer(
        holder="me", objects=lambda _: 3, renewal_status=lambda _: None, clock=FakeClock(), refresh=300.0
    )
    return composer.compose(cluster, found, health(reason), CURRENT, duplicate_of="")


def test_phases() -> None:
    well = composed(seen())
    assert well.phase is ClusterPhase.RUNNING
    assert well.id == "id-1"
    assert composed(ProbeResult(missing="no"), Reason.SECRET_MISSING).phase is ClusterPhase.FAILED
    assert composed(seen(id="", error=GONE), Reason.CONNECTING).phase is ClusterPhase.CREATING
    assert composed(seen(id="", error=GONE), Reason.TIMED_OUT, before=well).phase is ClusterPhase.UNKNOWN
    assert composed(seen(id="", error=GONE, secret_version="8"), before=well).phase is ClusterPhase.UPDATING
    assert composed(seen(), before=well, deleting=True).phase is ClusterPhase.DELETING


def test_nothing_new_is_nothing_to_write() -> None:
    once = composed(seen())
    assert composed(seen(), before=once) == once


def test_what_a_cluster_had_is_told_while_it_is_away_and_never_of_another() -> None:
    well = composed(seen(kubernetes_version="v1.35.0"))
    away = composed(seen(id="", error=GONE), Reason.TIMED_OUT, before=well)
    assert away.kubernetes_version == "v1.35.0"
    other = composed(seen(id="id-2", kubernetes_version="v1.20.0"), before=well)
    assert (other.id, other.kubernetes_version, other.phase) == ("id-1", "v1.35.0", ClusterPhase.FAILED)
    assert other.credentials == well.credentials
    ready = find_condition(other.conditions, ClusterCondition.READY)
    assert ready is not None
    assert (ready.status, ready.reason) == ("False", "NotAuthorized")
