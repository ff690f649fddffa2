"""What global management refuses, and why: errors of the API, with the codes that callers are answered with.

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

Messages are for the caller and never hold a secret.
"""
# ruff: noqa: N818 - they are named after what is the case

from typing import ClassVar

from kairship.gen.google.rpc.error_details_pb import BadRequest
from kairship.rpc.errors import ApiError, Code

_LONGEST = 500


class GhippoError(ApiError):
    CODE: ClassVar[Code]

    def __init__(self, message: str, *, field: str = "", retry_after: float | None = None) -> None:
        # It may quote the request, which may be of any length.
        told = message if len(message) <= _LONGEST else f"{message[:_LONGEST]}…"
        violation = BadRequest.FieldViolation(field=field, description=told)
        details = [BadRequest(field_violations=[violation])] if field else []
        super().__init__(self.CODE, told, details=details, retry_after=retry_after)
        self.field = field


class Invalid(GhippoError):
    CODE = Code.INVALID_ARGUMENT


class NotFound(GhippoError):
    CODE = Code.NOT_FOUND


class Exists(GhippoError):
    CODE = Code.ALREADY_EXISTS


class Refused(GhippoError):
    CODE = Code.PERMISSION_DENIED


class TooMany(GhippoError):
    CODE = Code.RESOURCE_EXHAUSTED


class Precondition(GhippoError):
    CODE = Code.FAILED_PRECONDITION


class Conflict(GhippoError):
    CODE = Code.ABORTED


class Unavailable(GhippoError):
    CODE = Code.UNAVAILABLE


class Unauthenticated(GhippoError):
    CODE = Code.UNAUTHENTICATED
