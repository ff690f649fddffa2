"""The errors that callers get: `google.rpc.Status`, with the codes of gRPC and of HTTP.

ApiError
├── InvalidArgument      3   400  the request itself is wrong; one violation per field
├── DeadlineExceeded     4   504  the deadline of the request has passed
├── NotFound             5   404  there is no such object, or none that the caller may know of
├── AlreadyExists        6   409
├── PermissionDenied     7   403
├── ResourceExhausted    8   429  too many requests; `retry_after` says when to try again
│   └── TooLarge         8   413  the request is too large; trying again does not help
├── FailedPrecondition   9   400  not possible in this state; the message says what must be done first
├── Aborted              10  409  another writer was faster: read again
├── Unimplemented        12  501
├── Internal             13  500  a defect of ours; the message says nothing but the request id
├── Unavailable          14  503  a backend or cluster does not answer; the same call may succeed later
└── Unauthenticated      16  401

Handlers raise these, or let errors of `kairship.kube` pass, which `of_exception` turns into these.
"""
# ruff: noqa: N818 - NotFound, Aborted: the names are the codes

import enum
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from protobuf import Message
from protobuf.wkt import Any as Packed
from protobuf.wkt import Duration

from kairship import kube
from kairship.gen.google.rpc.error_details_pb import BadRequest, ErrorInfo, RequestInfo, RetryInfo
from kairship.gen.google.rpc.status_pb import Status
from kairship.resources import NAMESPACE

KUBERNETES = "kubernetes.io"


class Code(enum.IntEnum):
    """The codes of google.rpc that we use."""

    CANCELLED = 1
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    UNAUTHENTICATED = 16


_HTTP = {
    Code.CANCELLED: 499,
    Code.INVALID_ARGUMENT: 400,
    Code.DEADLINE_EXCEEDED: 504,
    Code.NOT_FOUND: 404,
    Code.ALREADY_EXISTS: 409,
    Code.PERMISSION_DENIED: 403,
    Code.RESOURCE_EXHAUSTED: 429,
    Code.FAILED_PRECONDITION: 400,
    Code.ABORTED: 409,
    Code.UNIMPLEMENTED: 501,
    Code.INTERNAL: 500,
    Code.UNAVAILABLE: 503,
    Code.UNAUTHENTICATED: 401,
}


class ApiError(Exception):
    """An error whose message is for the caller: what is wrong, and what to do next."""

    HTTP_STATUS: ClassVar[int | None] = None
    """The HTTP status, where it is not the usual one of the code."""

    def __init__(
        self, code: Code, message: str, *, details: Iterable[Message[Any]] = (), retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retry_after = retry_after
        self.details: tuple[Message[Any], ...] = tuple(details)
        if retry_after is not None:
            self.details += (RetryInfo(retry_delay=Duration.from_seconds(retry_after)),)

    @property
    def http_status(self) -> int:
        return self.HTTP_STATUS or _HTTP[self.code]

    def status(self) -> Status:
        return Status(
            code=int(self.code), message=self.message, details=[Packed.pack(detail) for detail in self.details]
        )


class _Coded(ApiError):
    """An error whose class determines its code."""

    CODE: ClassVar[Code]

    def __init__(self, message: str, *, details: Iterable[Message[Any]] = (), retry_after: float | None = None) -> None:
        super().__init__(self.CODE, message, details=details, retry_after=retry_after)


class InvalidArgument(_Coded):
    """The request is wrong. A violation is the path of a field and what is wrong with that field."""

    CODE = Code.INVALID_ARGUMENT

    def __init__(
        self,
        message: str = "",
        *,
        violations: Sequence[tuple[str, str]] = (),
        details: Iterable[Message[Any]] = (),
    ) -> None:
        fields = [BadRequest.FieldViolation(field=field, description=text) for field, text in violations]
        message = message or "; ".join(f"{field}: {text}" if field else text for field, text in violations)
        super().__init__(message, details=(*([BadRequest(field_violations=fields)] if fields else ()), *details))
        self.violations = tuple(violations)


class NotFound(_Coded):
    CODE = Code.NOT_FOUND


class AlreadyExists(_Coded):
    CODE = Code.ALREADY_EXISTS


class FailedPrecondition(_Coded):
    CODE = Code.FAILED_PRECONDITION


class Aborted(_Coded):
    CODE = Code.ABORTED


class PermissionDenied(_Coded):
    CODE = Code.PERMISSION_DENIED


class Unauthenticated(_Coded):
    CODE = Code.UNAUTHENTICATED


class ResourceExhausted(_Coded):
    CODE = Code.RESOURCE_EXHAUSTED


class TooLarge(ResourceExhausted):
    """The request is too large. HTTP has a status of its own for this, so that clients do not send it again."""

    HTTP_STATUS = 413


class Unavailable(_Coded):
    CODE = Code.UNAVAILABLE


class DeadlineExceeded(_Coded):
    CODE = Code.DEADLINE_EXCEEDED


class Unimplemented(_Coded):
    CODE = Code.UNIMPLEMENTED


class Internal(_Coded):
    """A defect of ours. The caller gets nothing but the request id, by which operators find the defect in the logs."""

    CODE = Code.INTERNAL

    def __init__(self, request_id: str) -> None:
        super().__init__(
            f"an internal error occurred; operators find it in the logs under request id {request_id}",
            details=[RequestInfo(request_id=request_id)],
        )


_UNCERTAIN = "check whether the change was made before you try again"


def of_exception(error: BaseException, *, request_id: str = "") -> ApiError:
    """Returns the error that the caller gets for an exception that a handler did not catch."""
    match error:
        case ApiError():
            return error
        case kube.ApiError():
            return _of_refusal(error, request_id)
        case kube.TimedOut():
            return DeadlineExceeded(f"the API server of the cluster did not answer in time; {_UNCERTAIN}")
        case kube.KubeError():
            return _of_no_answer(error)
        case TimeoutError():
            return DeadlineExceeded("the deadline of the request has passed; request less, or set a later deadline")
        case _:
            return Internal(request_id)


def _of_no_answer(error: kube.KubeError) -> ApiError:
    """Leaves out the text of the error: it names addresses and files inside the platform, which are for the logs."""
    reason = ErrorInfo(reason=type(error).__name__, domain=KUBERNETES)
    match error:
        case kube.UnknownKind():
            message = "the cluster does not serve this kind (yet); install its CRD, or try again"
        case kube.ConnectFailed():
            message = "the API server of the cluster cannot be reached; nothing was changed, try again"
        case kube.TlsError() | kube.ConfigError():
            message = "the credential or certificate of the cluster is not valid; the cluster's operator must renew it"
        case _:
            message = f"the API server of the cluster did not answer properly; {_UNCERTAIN}"
    return Unavailable(message, details=[reason], retry_after=1.0 if error.retryable else None)


# The first class that matches counts.
_OF_KUBERNETES: tuple[tuple[type[kube.ApiError], Code], ...] = (
    (kube.Invalid, Code.INVALID_ARGUMENT),
    (kube.BadRequest, Code.INVALID_ARGUMENT),
    (kube.NotFound, Code.NOT_FOUND),
    (kube.AlreadyExists, Code.ALREADY_EXISTS),
    (kube.Conflict, Code.ABORTED),
    (kube.Forbidden, Code.PERMISSION_DENIED),
    (kube.Expired, Code.ABORTED),
    (kube.TooLarge, Code.RESOURCE_EXHAUSTED),
    (kube.TooManyRequests, Code.RESOURCE_EXHAUSTED),
    (kube.MethodNotAllowed, Code.FAILED_PRECONDITION),
    (kube.UnsupportedMediaType, Code.INVALID_ARGUMENT),
    (kube.ServerTimeout, Code.DEADLINE_EXCEEDED),
    (kube.ServerError, Code.UNAVAILABLE),
)

_OURSELVES = f'User "system:serviceaccount:{NAMESPACE}:'


def _of_refusal(error: kube.ApiError, request_id: str) -> ApiError:
    """A refusal by Kubernetes, with its reason, its causes and its Retry-After.

    A refusal is about the caller's request, so its message is passed on, with two exceptions: the caller can do nothing
    about a refusal of Kairship's own identity, and a status that has no code here is a defect.
    """
    if isinstance(error, kube.Forbidden) and _OURSELVES in error.message:
        return Unavailable(
            "Kairship's own service account lacks a permission in the cluster. That is normal for a moment after the "
            "cluster has started; if it lasts, the cluster's operator must apply Kairship's RBAC roles again",
            retry_after=1.0,
        )
    code = next((code for kind, code in _OF_KUBERNETES if isinstance(error, kind)), None)
    if code is None:
        if isinstance(error, kube.Unauthorized):
            return Unavailable("the cluster does not accept the credential that Kairship has for it; renew it")
        return Internal(request_id)
    reason = ErrorInfo(
        reason=error.reason or type(error).__name__, domain=KUBERNETES, metadata={"status": str(error.status)}
    )
    message = error.message or f"Kubernetes refused: {error.status} {error.reason}".rstrip()
    violations = [(cause.field, cause.message or cause.reason) for cause in error.causes if cause.field]
    if code is Code.INVALID_ARGUMENT:
        return InvalidArgument(message, violations=violations, details=[reason])
    if isinstance(error, kube.TooLarge):
        return TooLarge(message, details=[reason])
    causes = [BadRequest.FieldViolation(field=field, description=text) for field, text in violations]
    return ApiError(
        code,
        message,
        details=[reason, *([BadRequest(field_violations=causes)] if causes else ())],
        retry_after=error.retry_after,
    )
