"""HTTP sessions for requests to addresses that users have entered: those of webhooks and of identity providers.

Such an address could be this machine itself, a neighbour on its link, or the metadata service of its cloud. So every
connection is held to the operator's rule, after the name was resolved. Nobody but the log learns why a request failed:
the difference would tell which addresses exist and which ports are open.
"""

import ssl

import aiohttp

from kairship.kube import AddressRule

_TIMEOUT = aiohttp.ClientTimeout(total=10.0, connect=5.0)


def outgoing_session(addresses: AddressRule | None, *, context: ssl.SSLContext | None = None) -> aiohttp.ClientSession:
    """A session that connects where the rule permits. Without a rule it is for addresses that the operator has entered.

    Callers must not follow redirects.
    """
    connector = aiohttp.TCPConnector(
        ssl=context or True, socket_factory=addresses.open_socket if addresses is not None else None
    )
    return aiohttp.ClientSession(timeout=_TIMEOUT, connector=connector, cookie_jar=aiohttp.DummyCookieJar())


def reason_of(error: BaseException) -> str:
    """Why a request failed, for the log. The text of an error may hold a URL with secrets in its query."""
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    detail = f": {cause.strerror}" if isinstance(cause, OSError) and cause.strerror else ""
    return f"{type(cause).__name__}{detail}"
