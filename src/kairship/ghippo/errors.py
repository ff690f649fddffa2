"""What global management refuses, and why.

GhippoError
├── Invalid         the request itself is wrong; `field` says where
├── NotFound        there is none
├── Exists          there is one already
├── Refused         the caller may not do this
├── Precondition    not in this state; the message says what must be done first
├── Conflict        somebody else was faster: read again
├── Unauthenticated not signed in, or not any more
├── TooMany         too often or too much; `retry_after` says when to come back
└── Unavailable     the database does not answer; the same call may succeed later

`code` is the one of google.rpc that the entrance answers with. Messages are for the caller and never hold a secret.
"""
# ruff: noqa: N818 - they are named after what is the case

from typing import ClassVar

_LONGEST = 500


class GhippoError(Exception):
    code: ClassVar[int]

    def __init__(self, message: str, *, field: str = "", retry_after: float | None = None) -> None:
        # It may quote the request, which may be of any length.
        self.message = message if len(message) <= _LONGEST else f"{message[:_LONGEST]}…"
        super().__init__(self.message)
        self.field = field
        self.retry_after = retry_after


class Invalid(GhippoError):
    code = 3


class NotFound(GhippoError):
    code = 5


class Exists(GhippoError):
    code = 6


class Refused(GhippoError):
    code = 7


class TooMany(GhippoError):
    code = 8


class Precondition(GhippoError):
    code = 9


class Conflict(GhippoError):
    code = 10


class Unavailable(GhippoError):
    code = 14


class Unauthenticated(GhippoError):
    code = 16
