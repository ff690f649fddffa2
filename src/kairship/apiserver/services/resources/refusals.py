"""What API servers refuse for reasons of the object and not of the caller, told as such."""

from collections.abc import Iterator
from contextlib import contextmanager

from kairship.apiserver.errors import InvalidArgument
from kairship.kube import Forbidden


@contextmanager
def told_as_mistakes() -> Iterator[None]:
    """Admission webhooks say "forbidden" of an object that is wrong. The caller has the right and the wrong object."""
    try:
        yield
    except Forbidden as error:
        if "admission webhook" not in error.message:
            raise
        raise InvalidArgument(violations=[("data", error.message)]) from error
