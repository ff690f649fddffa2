"""Whether a caller may call a method of the API with this request: the options of the proto, applied."""

from typing import Any

from protobuf import Message

from kairship.access.authoriser import Authoriser
from kairship.access.callers import Caller
from kairship.access.decisions import Verdict
from kairship.gen.kairship.api.v1.access_pb import Scope
from kairship.wire import Method


class Gate:
    """Asked once per call, before the service. Whoever is not signed in has no `Caller`."""

    def __init__(self, authoriser: Authoriser) -> None:
        self._authoriser = authoriser

    def admits(self, caller: Caller | None, method: Method, request: Message[Any]) -> Verdict:
        if method.scope is Scope.ANYBODY:
            return Verdict.ALLOWED
        if caller is None:
            return Verdict.FORBIDDEN
        rights, permission = self._authoriser, method.permission
        match method.scope:
            case Scope.SELF:
                return rights.on_self(caller, permission)
            case Scope.PLATFORM if method.filtered:
                return rights.somewhere(caller, permission)
            case Scope.PLATFORM:
                return rights.on_platform(caller, permission)
            case Scope.WORKSPACE:
                return rights.on_workspace(caller, permission, _named(request, method.workspace))
            case Scope.INSTANCE if method.filtered:
                return rights.on_part_of_instance(caller, permission, _named(request, method.instance))
            case Scope.INSTANCE:
                return rights.on_instance(caller, permission, _named(request, method.instance))
            case Scope.NAMESPACE:
                instance, namespace = _named(request, method.instance), _named(request, method.namespace)
                # A namespace that is not named is not "all of them": it is nowhere.
                return rights.on_instance(caller, permission, instance, namespace) if namespace else Verdict.HIDDEN
            case _:
                return Verdict.FORBIDDEN


def _named(request: Message[Any], field: str | None) -> str:
    return str(getattr(request, field)) if field else ""
