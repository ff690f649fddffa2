"""The caller of a request, as far as rights go."""

from collections.abc import Iterable
from functools import cached_property
from typing import NewType

from kairship.resources import SubjectKind

Subject = NewType("Subject", str)
"""The user or group of a binding as one string: its hash is computed once, and decisions consist of lookups."""


def subject(kind: SubjectKind, identifier: str) -> Subject:
    return Subject(f"{kind.value}:{identifier}")


class Caller:
    """A person or machine with its present groups.

    An access token may be limited to fewer permissions than its owner has: then `limited_to` names them.
    """

    def __init__(self, user: str, groups: Iterable[str] = (), *, limited_to: frozenset[str] | None = None) -> None:
        self.user = user
        self.groups = tuple(groups)
        self.limited_to = limited_to

    def __repr__(self) -> str:
        return f"Caller({self.user!r}, {self.groups!r})"

    @cached_property
    def subjects(self) -> frozenset[Subject]:
        groups = (subject(SubjectKind.GROUP, group) for group in self.groups)
        return frozenset((subject(SubjectKind.USER, self.user), *groups))
