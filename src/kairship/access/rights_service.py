"""The service Rights: whether the caller may do something, and why.

The entrance serves it, because it has the authoriser that decides.
"""

from typing import Protocol

from kairship.access.authoriser import Authoriser
from kairship.access.bindings import Binding
from kairship.access.callers import Caller
from kairship.access.decisions import Decision, Explanation
from kairship.gen.kairship.ghippo.v1alpha1.rights_pb import CanIRequest, CanIResponse, Reason
from kairship.resources import SubjectKind


class _Caller(Protocol):
    @property
    def id(self) -> str: ...

    @property
    def groups(self) -> tuple[str, ...]: ...

    @property
    def limited_to(self) -> frozenset[str] | None: ...


class Call(Protocol):
    """The only attribute of a call that the service needs."""

    @property
    def caller(self) -> _Caller:
        """The caller with its groups and the limits of its token."""


class Rights:
    def __init__(self, authoriser: Authoriser) -> None:
        self._authoriser = authoriser

    async def can_i(self, request: CanIRequest, call: Call) -> CanIResponse:
        found = self._authoriser.explain(
            Caller(call.caller.id, call.caller.groups, limited_to=call.caller.limited_to),
            request.permission,
            instance=request.instance or None,
            namespace=request.namespace or None,
        )
        return CanIResponse(
            allowed=bool(found.decision),
            reasons=[_reason(binding) for binding in found.bindings],
            role=found.role.id if found.role else "",
            message=_message(found),
        )


def _reason(binding: Binding) -> Reason:
    origin = binding.spec.origin
    group = binding.spec.subject.id if binding.spec.subject.kind is SubjectKind.GROUP else ""
    named = origin.display_name or origin.id or ""
    return Reason(
        binding=binding.name,
        role=binding.spec.role.id,
        group=group,
        origin=f"{origin.kind.value} {named}".rstrip(),
    )


def _message(found: Explanation) -> str:
    if found.decision is Decision.ALLOWED:
        return "allowed"
    if found.decision is Decision.UNCERTAIN:
        return "rights cannot be checked at this moment; try again soon"
    if found.role is None:
        return f"there is no permission {found.permission[:191]!r}; list /permissions to see which there are"
    if found.outside_token:
        return f"this access token is not for {found.permission}; create one that is"
    return f"{found.permission} is not granted here; the role {found.role.title} grants it: ask an administrator for it"
