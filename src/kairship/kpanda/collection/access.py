"""How a collection gets at its cluster. Tokens come and go while it runs; anything else that changes begins it anew."""

import msgspec

from kairship.kube import AddressRule, Client, Connection

# One for every kind, and some clusters have very many.
MOST_STREAMS = 8192
_MOST_CALLS = 8
# Pages that are larger are asked for anew with fewer objects. One object that is larger is not collected.
_LARGEST_PAGE = 128 << 20
_USER_AGENT = "kairship-collector"


class Access:
    def __init__(self, connection: Connection, addresses: AddressRule) -> None:
        self._connection = connection
        self._addresses = addresses

    def __repr__(self) -> str:
        return f"Access({self._connection.server})"

    @property
    def token(self) -> str | None:
        """The one to send now."""
        return self._connection.token

    def renew(self, connection: Connection) -> bool:
        """Whether the new credential can be used from now on, without a new connection."""
        if _without_token(connection) != _without_token(self._connection):
            return False
        if bool(connection.token) != bool(self._connection.token):
            return False  # another kind of identity
        self._connection = connection
        return True

    def connect(self) -> Client:
        """A client that sends the newest token. Who connects has to close it."""
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
