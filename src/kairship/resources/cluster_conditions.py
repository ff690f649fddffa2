"""The conditions of a cluster and their reasons."""

from kairship.resources.schema.condition_type import ConditionType
from kairship.resources.schema.documented_enum import DocumentedEnum, Writer


class ClusterReason(DocumentedEnum):
    """Why a condition of a cluster has its status."""

    # Ready
    AS_EXPECTED = "AsExpected", "it is reachable, its credential is valid and its index is current"
    NOT_REACHABLE = "NotReachable", "its API server does not answer"
    NOT_AUTHORIZED = "NotAuthorized", "its credential does not give access to it"
    INDEX_BEHIND = "IndexBehind", "it can be used, but the index is behind"
    BEING_DELETED = "BeingDeleted", "it is being deleted"

    # Reachable
    ANSWERS = "Answers", "its API server answers"
    CONNECT_FAILED = "ConnectFailed", "no connection to its API server"
    TIMED_OUT = "TimedOut", "its API server took too long to answer"
    CERTIFICATE_REJECTED = "CertificateRejected", "its certificate has expired or is not trusted"
    ADDRESS_REFUSED = "AddressRefused", "the plane is not allowed to connect to its address (--allow-address)"

    # CredentialsValid
    VERIFIED = "Verified", "the cluster accepts the credential"
    SECRET_MISSING = "SecretMissing", "the Secret does not exist or has no key `kubeconfig`"
    KUBECONFIG_REFUSED = "KubeconfigRefused", "the kubeconfig contains something that is not allowed; see the message"
    REJECTED = "Rejected", "the cluster does not accept the credential"
    RIGHTS_MISSING = "RightsMissing", "the credential is accepted, but lacks permissions that are needed"
    EXPIRING = "Expiring", "the credential is valid and expires soon"
    EXPIRED = "Expired", "the credential has expired"
    OTHER_CLUSTER = "OtherCluster", "the credential gives access to another cluster than the registered one"
    DUPLICATE = "Duplicate", "the cluster is already registered under the name in the message"
    NOT_VERIFIED = "NotVerified", "the cluster did not answer, so the credential could not be verified"

    # Collected
    CURRENT = "Current", "the index is up to date"
    LISTING = "Listing", "the index is being filled"
    BEHIND = "Behind", "the index does not keep up with the cluster"
    INTERRUPTED = "Interrupted", "the connection is lost; the index has the state from before"
    LIMIT_REACHED = "LimitReached", "the cluster has more than the index keeps of one; its largest kinds are not in it"
    STORE_FAILED = "StoreFailed", "the index cannot be written"


_R = ClusterReason


class ClusterCondition(ConditionType):
    """The conditions of a cluster."""

    READY = (
        "Ready",
        Writer.KPANDA,
        "the cluster can be used; this summarises the other conditions, for `kubectl wait`",
        (_R.AS_EXPECTED, _R.INDEX_BEHIND, _R.NOT_REACHABLE, _R.NOT_AUTHORIZED, _R.BEING_DELETED),
    )
    REACHABLE = (
        "Reachable",
        Writer.KPANDA,
        "the cluster's API server answers",
        (_R.ANSWERS, _R.CONNECT_FAILED, _R.TIMED_OUT, _R.CERTIFICATE_REJECTED, _R.ADDRESS_REFUSED),
    )
    CREDENTIALS_VALID = (
        "CredentialsValid",
        Writer.KPANDA,
        "the credential gives access to the registered cluster, with the permissions that are needed",
        (
            _R.VERIFIED,
            _R.EXPIRING,
            _R.SECRET_MISSING,
            _R.KUBECONFIG_REFUSED,
            _R.REJECTED,
            _R.RIGHTS_MISSING,
            _R.EXPIRED,
            _R.OTHER_CLUSTER,
            _R.DUPLICATE,
            _R.NOT_VERIFIED,
        ),
    )
    COLLECTED = (
        "Collected",
        Writer.KPANDA,
        "the index contains the cluster's objects and is kept up to date",
        (_R.CURRENT, _R.LISTING, _R.BEHIND, _R.INTERRUPTED, _R.LIMIT_REACHED, _R.STORE_FAILED),
    )
