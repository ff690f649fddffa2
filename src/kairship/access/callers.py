"""Who asks, as far as rights go."""

from collections.abc import Iterable
from functools import cached_property
from typing import NewType

from kairship.resources import SubjectKind

Subject = NewType("Subject", str)
"""Whoever a binding can be about, as one string: its hash is computed once, and decisions are made of lookups."""


def subject(kind: SubjectKind, identifier: str) -> Subject:
    return Subject(f"{kind.value}:{identifier}")


class Caller:
    """A person or machine with the groups that it is in at this moment.

    An access token may be for less than its owner may do: then `limited_to` names the permissions that it is for.
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
