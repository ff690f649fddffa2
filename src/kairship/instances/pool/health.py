"""The health of a target of the pool, and the error that its users get while the target cannot be used."""

import datetime as dt
from enum import StrEnum

import msgspec

from kairship.kube import AddressRefused, KubeError, TimedOut, TlsError, Unauthorized
from kairship.kube.errors import ConnectFailed, Disconnected


class TargetKind(StrEnum):
    """The kinds of targets."""

    INSTANCE = "instance"
    CLUSTER = "cluster"


class Reason(StrEnum):
    """Why a target is connected or not."""

    ANSWERS = "Answers"
    NOT_READ_YET = "NotReadYet"
    UNKNOWN = "Unknown"
    NO_CREDENTIALS = "NoCredentials"
    SECRET_MISSING = "SecretMissing"  # noqa: S105 - the name of a reason
    SECRET_UNREADABLE = "SecretUnreadable"  # noqa: S105
    KUBECONFIG_REFUSED = "KubeconfigRefused"
    CONNECTING = "Connecting"
    CONNECT_FAILED = "ConnectFailed"
    TIMED_OUT = "TimedOut"
    ADDRESS_REFUSED = "AddressRefused"
    CERTIFICATE_REJECTED = "CertificateRejected"
    CREDENTIAL_REJECTED = "CredentialRejected"
    BAD_ANSWER = "BadAnswer"

    @classmethod
    def of(cls, error: KubeError) -> "Reason":
        """The reason for a failed probe."""
        match error:
            case TimedOut():
                return cls.TIMED_OUT
            case AddressRefused():
                return cls.ADDRESS_REFUSED
            case TlsError():
                return cls.CERTIFICATE_REJECTED
            case Unauthorized():
                return cls.CREDENTIAL_REJECTED
            case ConnectFailed() | Disconnected():
                return cls.CONNECT_FAILED
            case _:
                return cls.BAD_ANSWER


class NotConnected(Exception):  # noqa: N818 - says what is the case
    """There is no client for this target at present; the message says why and what to do."""

    def __init__(self, kind: TargetKind, name: str, reason: Reason, message: str) -> None:
        super().__init__(f"{kind} {name!r} is not connected: {message}")
        self.kind = kind
        self.name = name
        self.reason = reason


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a target after the last probe."""

    kind: TargetKind
    name: str
    reachable: bool
    reason: Reason
    since: dt.datetime
    """When `reachable` last changed, or when the target became known."""
    message: str = ""
    """Why the target is not reachable and what to do."""
    error: KubeError | None = None
    """The last failure of a probe, even if the target does not count as unreachable yet."""
    latency: float | None = None
    """How many seconds the last successful probe took."""
    server_version: str = ""
    """The Kubernetes version of the target, as of the last successful probe."""

    def not_connected(self) -> NotConnected:
        message = self.message
        if self.error is not None:
            message = f"no answer since {self.since:%Y-%m-%d %H:%M:%S} UTC: {message}"
        return NotConnected(self.kind, self.name, self.reason, message)
