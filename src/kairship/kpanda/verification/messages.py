"""The messages about a server that cannot be used.

They do not repeat what the server said, because a caller could use that to read from addresses that only the plane can
reach.
"""

from kairship.kube import ApiError, BadReply, CertificateExpired, ConfigError, KubeError, TimedOut, TlsError

ADDRESS_REFUSED = (
    "the address leads to the plane's own machine or link, or to a metadata service: use an address of the cluster's "
    "own, or have the operator allow this one (--allow-address)"
)
ADDRESS_PASSED = "the plane connects to an address like this one"
REJECTED = "the cluster does not accept the credential: use one that is valid there"


def why_unreachable(error: KubeError, timeout: float) -> str:
    """The message for an error of the first calls to a server. `timeout` is that of each call."""
    match error:
        case TimedOut():
            return f"the server did not answer within {timeout:g} s: check the address, and that no firewall is between"
        case CertificateExpired():
            return "the certificate of the server has expired: renew it there"
        case TlsError():
            return "the certificate of the server is not trusted: give the certificate authority that it is from"
        case ConfigError():
            return "the certificate, key or token cannot be used as it is"
        case BadReply():
            return "something answers there, but not as an API server does: check the address"
        case ApiError():
            return f"the server answers with status {error.status}: check that it is the API server of a cluster"
        case _:
            return "there is no connection to the server: check the address, and that it runs"
