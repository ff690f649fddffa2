"""Who may do what. Default deny: what nobody allows is refused, and a method that names no permission is nobody's."""

from typing import Any, Protocol

from protobuf import Message

from kairship.apiserver.authentication import ADMIN
from kairship.rpc.calls import Call
from kairship.rpc.errors import PermissionDenied


class Authorizer(Protocol):
    def authorize(self, call: Call, request: Message[Any]) -> None:
        """Returns if the caller may. Decides from memory, at once.

        Raises `PermissionDenied`, or `NotFound` where the caller may not even know that there is something.
        """
        ...


class AdminOnly:
    """The administrator may do everything, everybody else nothing."""

    def authorize(self, call: Call, request: Message[Any]) -> None:
        if call.caller != ADMIN:
            raise PermissionDenied(
                f"{call.method.permission} is needed for this; ask an administrator of the platform for it"
            )


def require_permission_named(call: Call) -> None:
    if not call.method.permission:
        raise PermissionDenied("nobody may call this: it names no permission")
