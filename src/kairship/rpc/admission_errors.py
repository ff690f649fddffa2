"""Turns a refusal by admission into the error that it means for the caller.

Admission webhooks and policies answer "forbidden", as if the caller lacked a permission. In truth the object that was
sent is wrong, or something must happen first.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kairship.kube import Forbidden
from kairship.rpc.errors import ApiError, FailedPrecondition, InvalidArgument

_ADMISSION = ("admission webhook", "ValidatingAdmissionPolicy")


def is_admission_refusal(message: str) -> bool:
    """Whether the message of a 403 is that of an admission webhook or policy, and not of RBAC."""
    return any(word in message for word in _ADMISSION)


@contextmanager
def admission_as_invalid_argument() -> Iterator[None]:
    """Wraps a write of an object that the caller sent."""
    with _translated(lambda message: InvalidArgument(violations=[("data", message)])):
        yield


@contextmanager
def admission_as_failed_precondition() -> Iterator[None]:
    """Wraps a write for which the caller sends no object: a deletion, a join."""
    with _translated(FailedPrecondition):
        yield


@contextmanager
def _translated(make_error: Callable[[str], ApiError]) -> Iterator[None]:
    try:
        yield
    except Forbidden as error:
        if not is_admission_refusal(error.message):
            raise
        raise make_error(error.message) from error
