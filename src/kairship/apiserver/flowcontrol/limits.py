"""The limits of the entrance: what one request and one caller may cost. Every limit is for one worker."""

import msgspec

from kairship.wire import Method


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    body: int = 16 << 20
    """Bytes of a request's body over REST."""
    message: int = 4 << 20
    """Bytes of a request over gRPC. It is parsed by one call into C that nothing interrupts: 16 MiB of empty fields
    would block the event loop for more than two seconds."""
    large_body: int = 1 << 20
    """Bytes from which on a body counts as large."""
    large_bodies: int = 8
    """Large bodies that are held at the same time."""
    read_seconds: float = 30.0
    write_seconds: float = 60.0
    stream_seconds: float = 3600.0
    """How long a stream lasts; its client calls again."""
    stalled_seconds: float = 60.0
    """How long the client of a stream may take no data."""
    running: int = 128
    """Requests that are served at the same time."""
    running_per_caller: int = 32
    running_per_destination: int = 32
    """Requests of the native proxy to one instance, or to one member cluster, which may not answer."""
    running_per_caller_and_destination: int = 16
    wide: int = 4
    """As how many requests a list of every object of a kind counts."""
    waiting: int = 1024
    """Requests that wait in the fair queue."""
    waiting_per_caller: int = 128
    waiting_per_destination: int = 256
    queue_seconds: float = 20.0
    """How long a request of the native proxy waits in the fair queue."""
    reply_seconds: float = 300.0
    """How long a reply of the native proxy may take that is no stream, however slowly the client reads it."""
    connections: int = 4000
    """HTTP connections that are open at the same time, idle ones included."""
    stranger_connections: int = 3000
    """Those of them that have not carried a request of an authenticated caller yet."""
    stranger_connections_per_address: int = 500
    """Those of strangers from one address, or from one /64 of IPv6."""
    calls_per_second: float = 1000.0
    """Requests of one caller, after a burst of `calls_burst`."""
    calls_burst: int = 5000
    sign_ins_per_second: float = 10.0
    """Unauthenticated requests from one address, after a burst of `sign_ins_burst`."""
    sign_ins_burst: int = 100
    bad_tokens_per_second: float = 1.0
    """Invalid credentials from one address, after a burst of `bad_tokens_burst`."""
    bad_tokens_burst: int = 50
    streams: int = 2000
    """Streams that are open at the same time."""
    streams_per_caller: int = 200

    def seconds_for(self, method: Method) -> float:
        """Returns the longest that a call of the method may take."""
        if method.streams:
            return self.stream_seconds
        return self.read_seconds if method.permission.endswith(".get") else self.write_seconds
