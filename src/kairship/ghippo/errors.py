"""The errors that global management answers callers with. They are named after their gRPC codes, as in `rpc.errors`.

GhippoError
├── InvalidArgument      the request itself is wrong; `field` says where
├── NotFound             there is no such object
├── AlreadyExists        there is such an object already
├── PermissionDenied     the caller may not do this
├── FailedPrecondition   not in the present state; the message says what must be done first
├── Unauthenticated      the caller is not signed in, or no longer is
├── ResourceExhausted    too many requests or objects; `retry_after` says when to try again
└── Unavailable          the database or an identity provider does not answer; the same call may succeed later

Messages are for the caller and never hold a secret.
"""
# ruff: noqa: N818 - the names are the codes

from typing import ClassVar

from kairship.gen.google.rpc.error_details_pb import BadRequest
from kairship.rpc.errors import ApiError, Code

_MAX_MESSAGE = 500


class GhippoError(ApiError):
    CODE: ClassVar[Code]

    def __init__(self, message: str, *, field: str = "", retry_after: float | None = None) -> None:
        # The message may quote the request, which may be of any length.
        bounded = message if len(message) <= _MAX_MESSAGE else f"{message[:_MAX_MESSAGE]}…"
        violation = BadRequest.FieldViolation(field=field, description=bounded)
        details = [BadRequest(field_violations=[violation])] if field else []
        super().__init__(self.CODE, bounded, details=details, retry_after=retry_after)
        self.field = field


class InvalidArgument(GhippoError):
    CODE = Code.INVALID_ARGUMENT


class NotFound(GhippoError):
    CODE = Code.NOT_FOUND


class AlreadyExists(GhippoError):
    CODE = Code.ALREADY_EXISTS


class PermissionDenied(GhippoError):
    CODE = Code.PERMISSION_DENIED


class ResourceExhausted(GhippoError):
    CODE = Code.RESOURCE_EXHAUSTED


class FailedPrecondition(GhippoError):
    CODE = Code.FAILED_PRECONDITION


class Unavailable(GhippoError):
    CODE = Code.UNAVAILABLE


class Unauthenticated(GhippoError):
    CODE = Code.UNAUTHENTICATED
