"""The connection by which a cluster is collected. Its token can change while it is used; any other change ends it."""

import msgspec

from kairship.kube import AddressRule, Client, Connection

# Every kind needs a stream, and some clusters have very many kinds.
MOST_STREAMS = 8192
_MOST_CALLS = 8
# A larger page is requested again with fewer objects. A single object that is larger is not collected.
_LARGEST_PAGE = 32 << 20
_USER_AGENT = "kairship-collector"


class CollectorConnection:
    def __init__(self, connection: Connection, addresses: AddressRule) -> None:
        self._connection = connection
        self._addresses = addresses

    def __repr__(self) -> str:
        return f"CollectorConnection({self._connection.server})"

    @property
    def token(self) -> str | None:
        """The newest token, which every request sends."""
        return self._connection.token

    def renew(self, connection: Connection) -> bool:
        """Uses a new credential from now on. False if more than the token changed, which needs a new connection."""
        if _without_token(connection) != _without_token(self._connection):
            return False
        if bool(connection.token) != bool(self._connection.token):
            return False  # another kind of identity
        self._connection = connection
        return True

    def connect(self) -> Client:
        """A client that sends the newest token. The caller has to close it."""
        return Client(
            self._connection,
            max_connections=_MOST_CALLS,
            max_streams=MOST_STREAMS,
            user_agent=_USER_AGENT,
            token=lambda: self.token,
            addresses=self._addresses,
            largest_reply=_LARGEST_PAGE,
        )


def _without_token(connection: Connection) -> Connection:
    return msgspec.structs.replace(connection, token=None)
