"""What people are told of a server that cannot be used.

What the server itself said is not passed on: its address may be one that somebody only wanted to hear of.
"""

from kairship.kube import ApiError, BadReply, CertificateExpired, ConfigError, KubeError, TimedOut, TlsError

ADDRESS_REFUSED = (
    "the address leads to the plane's own machine or link, or to a metadata service: use an address of the cluster's "
    "own, or have the operator allow this one (--allow-address)"
)
ADDRESS_PASSED = "the plane connects to an address like this one"
REJECTED = "the cluster does not accept the credential: use one that is valid there"


def why_unreachable(error: KubeError, patience: float) -> str:
    match error:
        case TimedOut():
            return (
                f"the server did not answer within {patience:g} s: check the address, and that no firewall is between"
            )
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
