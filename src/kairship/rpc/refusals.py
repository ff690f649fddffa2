"""What admission refuses, told as what it is.

Admission webhooks and policies answer "forbidden", as if the caller lacked a right. What is wrong is the object that
was sent, or the moment.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kairship.kube import Forbidden
from kairship.rpc.errors import ApiError, FailedPrecondition, InvalidArgument

_ADMISSION = ("admission webhook", "ValidatingAdmissionPolicy")


@contextmanager
def told_as_mistake() -> Iterator[None]:
    """Around writing an object that a caller sent."""
    with _told(lambda message: InvalidArgument(violations=[("data", message)])):
        yield


@contextmanager
def told_as_precondition() -> Iterator[None]:
    """Around what needs no object of the caller: a deletion, a join."""
    with _told(FailedPrecondition):
        yield


@contextmanager
def _told(make: Callable[[str], ApiError]) -> Iterator[None]:
    try:
        yield
    except Forbidden as error:
        if not any(word in error.message for word in _ADMISSION):
            raise
        raise make(error.message) from error
