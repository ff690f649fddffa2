"""The conditions of a cluster and their reasons."""

from .condition import ConditionType
from .documented import Documented, Writer


class ClusterReason(Documented):
    """Why a condition of a cluster has its status."""

    # Ready
    AS_EXPECTED = "AsExpected", "it is reachable, its credential is valid and its index is current"
    NOT_REACHABLE = "NotReachable", "its API server does not answer"
    NOT_AUTHORIZED = "NotAuthorized", "its credential does not open it"
    INDEX_BEHIND = "IndexBehind", "it can be used, but the index is behind"
    BEING_DELETED = "BeingDeleted", "somebody asked for its removal"

    # Reachable
    ANSWERS = "Answers", "its API server answers"
    CONNECT_FAILED = "ConnectFailed", "no connection to its API server"
    TIMED_OUT = "TimedOut", "its API server took too long to answer"
    CERTIFICATE_REJECTED = "CertificateRejected", "its certificate has expired or is not trusted"
    ADDRESS_REFUSED = "AddressRefused", "the plane does not connect to an address like this one"

    # CredentialsValid
    VERIFIED = "Verified", "the cluster accepts the credential"
    SECRET_MISSING = "SecretMissing", "the Secret does not exist or has no key `kubeconfig`"
    KUBECONFIG_REFUSED = "KubeconfigRefused", "the kubeconfig has something that is not accepted; the message says what"
    REJECTED = "Rejected", "the cluster does not accept the credential"
    RIGHTS_MISSING = "RightsMissing", "the credential is accepted, but lacks rights that are needed"
    EXPIRING = "Expiring", "the credential is valid and ends soon"
    EXPIRED = "Expired", "the credential has ended"
    OTHER_CLUSTER = "OtherCluster", "the credential opens another cluster than the one that was registered"
    DUPLICATE = "Duplicate", "the cluster is registered already under the name in the message"
    NOT_VERIFIED = "NotVerified", "the cluster could not be asked"

    # Collected
    CURRENT = "Current", "the index follows the cluster"
    LISTING = "Listing", "the index is being filled"
    BEHIND = "Behind", "the index does not keep up with the cluster"
    INTERRUPTED = "Interrupted", "the connection is lost; the index has what was there before"
    STORE_FAILED = "StoreFailed", "the index cannot be written"


_R = ClusterReason


class ClusterCondition(ConditionType):
    """What can be the case with a cluster."""

    READY = (
        "Ready",
        Writer.KPANDA,
        "the cluster can be used; a summary of the others, for `kubectl wait`",
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
        "the credential opens the cluster that was registered, with the rights that are needed",
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
        "the index holds the cluster's objects and follows them",
        (_R.CURRENT, _R.LISTING, _R.BEHIND, _R.INTERRUPTED, _R.STORE_FAILED),
    )
