"""The errors that callers get: the right code, Kubernetes' reason and causes, and no internals."""

import json

import pytest

from kairship import kube
from kairship.rpc.errors import ApiError, Code, InvalidArgument, NotFound, ResourceExhausted, of_exception
from kairship.wire import write

OURSELVES = (
    'pods is forbidden: User "system:serviceaccount:kairship-system:kairship-kpanda" cannot list resource "pods"'
)


def told(error: BaseException) -> dict[str, object]:
    found: dict[str, object] = json.loads(write(of_exception(error, request_id="r-1").status()))
    return found


@pytest.mark.parametrize(
    ("error", "code", "http"),
    [
        (kube.Invalid(status=422), Code.INVALID_ARGUMENT, 400),
        (kube.BadRequest(status=400), Code.INVALID_ARGUMENT, 400),
        (kube.NotFound(status=404), Code.NOT_FOUND, 404),
        (kube.AlreadyExists(status=409), Code.ALREADY_EXISTS, 409),
        (kube.Conflict(status=409), Code.ABORTED, 409),
        (kube.Forbidden(status=403), Code.PERMISSION_DENIED, 403),
        (kube.Forbidden(status=403, message=OURSELVES), Code.UNAVAILABLE, 503),
        (kube.Unauthorized(status=401), Code.UNAVAILABLE, 503),
        (kube.Expired(status=410), Code.ABORTED, 409),
        (kube.TooLarge(status=413), Code.RESOURCE_EXHAUSTED, 413),
        (kube.TooManyRequests(status=429), Code.RESOURCE_EXHAUSTED, 429),
        (kube.ServerTimeout(status=504), Code.DEADLINE_EXCEEDED, 504),
        (kube.InternalError(status=500), Code.UNAVAILABLE, 503),
        (kube.ApiError(status=418), Code.INTERNAL, 500),
        (kube.ConnectFailed("https://10.0.0.1"), Code.UNAVAILABLE, 503),
        (kube.Disconnected("https://10.0.0.1"), Code.UNAVAILABLE, 503),
        (kube.TimedOut("https://10.0.0.1"), Code.DEADLINE_EXCEEDED, 504),
        (kube.UnknownKind("x"), Code.UNAVAILABLE, 503),
        (kube.ConfigError("/etc/secret"), Code.UNAVAILABLE, 503),
        (TimeoutError(), Code.DEADLINE_EXCEEDED, 504),
        (ValueError("password=hunter2"), Code.INTERNAL, 500),
        (NotFound("no"), Code.NOT_FOUND, 404),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else str(value),
)
def test_every_error_has_its_code(error: BaseException, code: Code, http: int) -> None:
    found = of_exception(error, request_id="r-1")
    assert (found.code, found.http_status) == (code, http)
    assert found.message


def test_a_refusal_keeps_reason_causes_and_pause() -> None:
    causes = [kube.Cause(reason="FieldValueInvalid", message="must be positive", field="spec.replicas")]
    assert told(kube.Invalid(status=422, reason="Invalid", message="it is invalid", causes=causes)) == {
        "code": 3,
        "message": "it is invalid",
        "details": [
            {
                "@type": "type.googleapis.com/google.rpc.BadRequest",
                "fieldViolations": [{"field": "spec.replicas", "description": "must be positive", "reason": ""}],
            },
            {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "Invalid",
                "domain": "kubernetes.io",
                "metadata": {"status": "422"},
            },
        ],
    }
    details = told(kube.TooManyRequests(status=429, retry_after=2.5))["details"]
    assert {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "2.500s"} in details  # type: ignore[operator]


@pytest.mark.parametrize(
    "error",
    [
        ValueError("password=hunter2"),
        kube.ConnectFailed("hunter2"),
        kube.BadReply("hunter2"),
        kube.ConfigError("hunter2"),
        kube.Unauthorized(status=401, message="hunter2"),
        kube.Forbidden(status=403, message=f"{OURSELVES} hunter2"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_is_inside_stays_inside(error: Exception) -> None:
    assert "hunter2" not in json.dumps(told(error))


def test_a_defect_says_where_to_look() -> None:
    assert "r-1" in str(told(ZeroDivisionError())["message"])


def test_violations_make_the_message() -> None:
    error = InvalidArgument(violations=[("a.b", "is wrong"), ("", "all of it")])
    assert error.message == "a.b: is wrong; all of it"
    assert ResourceExhausted("later", retry_after=3).retry_after == 3
    assert isinstance(error, ApiError)
