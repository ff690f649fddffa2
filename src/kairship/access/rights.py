"""The service Rights: whether the caller may do something, and why. Answered where it is decided."""

from typing import Protocol

from kairship.access.authoriser import Authoriser
from kairship.access.bindings import Binding
from kairship.access.callers import Caller
from kairship.access.decisions import Explanation, Verdict
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
    """The part of a call that is needed here."""

    @property
    def caller(self) -> _Caller:
        """Who asks, with groups and the limits of a token."""


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
            allowed=bool(found.verdict),
            reasons=[_reason(binding) for binding in found.bindings],
            role=found.role.id if found.role else "",
            message=_sentence(found),
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


def _sentence(found: Explanation) -> str:
    if found.verdict is Verdict.ALLOWED:
        return "allowed"
    if found.verdict is Verdict.UNCERTAIN:
        return "rights cannot be checked at this moment; try again soon"
    if found.role is None:
        return "there is no such permission; list /permissions for those that there are"
    if found.outside_token:
        return "the access token is not for this; create one that is"
    return f"not allowed; the role {found.role.title} on it would allow it: ask an administrator"
