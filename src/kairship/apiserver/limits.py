"""How much one request may cost, and one caller. All figures are for one worker."""

import msgspec

from kairship.wire import Method


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    body: int = 16 << 20
    """Bytes of a request over REST."""
    message: int = 4 << 20
    """Bytes of a request over gRPC. Reading one is a call into C that nothing interrupts: 16 MiB of empty fields would
    hold up everybody for more than two seconds."""
    large_body: int = 1 << 20
    large_bodies: int = 8
    """Requests larger than `large_body` that are held at the same time."""
    read_seconds: float = 30.0
    write_seconds: float = 60.0
    stream_seconds: float = 3600.0
    """How long a stream lasts; its client calls again."""
    stalled_seconds: float = 60.0
    """How long a client may take no data of its stream."""
    running: int = 128
    """Requests that are served at the same time."""
    running_per_caller: int = 32
    running_per_place: int = 32
    """Through the native proxy into one instance, or into one member cluster: it may be one that does not answer."""
    running_per_caller_and_place: int = 16
    wide: int = 4
    """As how many requests counts a list of everything of a kind."""
    waiting: int = 1024
    waiting_per_caller: int = 128
    waiting_per_place: int = 256
    turn_seconds: float = 20.0
    """How long a request of the native proxy waits for its turn."""
    reply_seconds: float = 300.0
    """How long a reply of the native proxy takes that is no stream, however slowly it is read."""
    connections: int = 4000
    """Of HTTP that are open at the same time, with something to do or not."""
    calls_per_second: float = 1000.0
    """Requests of one caller, after `calls_at_once`."""
    calls_at_once: int = 5000
    sign_ins_per_second: float = 10.0
    """Requests of one address that nobody has signed in for, after `sign_ins_at_once`."""
    sign_ins_at_once: int = 100
    bad_tokens_per_second: float = 1.0
    """Credentials of one address that are not good, after `bad_tokens_at_once`."""
    bad_tokens_at_once: int = 50
    streams: int = 2000
    streams_per_caller: int = 200

    def seconds_for(self, method: Method) -> float:
        """The longest that a call of the method may take."""
        if method.streams:
            return self.stream_seconds
        return self.read_seconds if method.permission.endswith(".get") else self.write_seconds
