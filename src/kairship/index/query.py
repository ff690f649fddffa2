"""A query to the index, and the plan by which both databases answer it.

A `Query` says what a caller asks for and may see. `plan` turns it into conditions about tokens, columns, numbers in
labels, names and ownership; each database makes SQL of them in its `emitter`. Every text of a caller ends up as a bound
parameter; the names of columns come from this module alone.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Literal

import msgspec

from kairship.index.selectable_fields import selectable
from kairship.index.selectors import (
    INTEGER,
    AnyOf,
    BadSelectorError,
    Compared,
    FieldRequirement,
    LabelRequirement,
    NoneOf,
    Present,
)
from kairship.index.tokens import field_token, label_key_token, label_token
from kairship.resources import RESERVED_PREFIX


class Sort(StrEnum):
    """Each is a total order: rows that it leaves equal are ordered by cluster, kind and key."""

    KEY = "key"
    """By namespace and name, as API servers list."""
    NAME = "name"
    CREATED = "created"


class VisibleScope(msgspec.Struct, frozen=True):
    """A part of a cluster that the caller may see; None stands for all. Several scopes of one cluster add up."""

    cluster: str
    kinds: frozenset[str] | None = None
    namespaces: frozenset[str] | None = None
    """If namespaces are given, cluster-scoped objects are not visible."""
    reserved: bool = True
    """Whether the namespaces in which Karmada and the plane keep their own objects are among them."""


class Position(msgspec.Struct, frozen=True, array_like=True):
    """The position after one row of an answer."""

    value: str | int
    cluster: str
    kind: str
    key: str


class Query(msgspec.Struct, frozen=True, kw_only=True):
    scopes: tuple[VisibleScope, ...]
    kinds: frozenset[str] | None = None
    namespace: str | None = None
    name: str | None = None
    labels: tuple[LabelRequirement, ...] = ()
    fields: tuple[FieldRequirement, ...] = ()
    owned_by: str | None = None
    """The uid of an object: selects what it owns, directly or through other owners."""
    name_contains: str | None = None
    created_from: int | None = None
    created_before: int | None = None
    sort: Sort = Sort.KEY
    descending: bool = False
    limit: int | None = None
    skip: int = 0
    """How many rows to leave out at the beginning. They are read all the same: `after` is cheaper for paging."""
    after: Position | None = None
    declared_fields: tuple[str, ...] = ()
    """The `selectableFields` of the custom resource that is queried."""


class HasToken(msgspec.Struct, frozen=True):
    """The object has one of these tokens; with `wanted` False, none of them."""

    tokens: tuple[str, ...]
    wanted: bool = True


class LabelNumber(msgspec.Struct, frozen=True):
    """The value of a label is an integer above or below this one. Values that are not integers do not match."""

    key: str
    operator: Literal[">", "<"]
    number: int

    def holds(self, value: str) -> bool:
        if not INTEGER.fullmatch(value):
            return False
        return int(value) > self.number if self.operator == ">" else int(value) < self.number


class Column(msgspec.Struct, frozen=True):
    name: Literal["ns", "name", "created"]
    operator: Literal["=", "<>", "<", ">="]
    value: str | int


class NameContains(msgspec.Struct, frozen=True):
    text: str


class OwnedBy(msgspec.Struct, frozen=True):
    uid: str


Condition = HasToken | LabelNumber | Column | NameContains | OwnedBy


class Plan(msgspec.Struct, frozen=True):
    query: Query
    conditions: tuple[Condition, ...]

    @property
    def is_walk(self) -> bool:
        """Whether the rows are a range of the keys of one kind, or of the keys that have one token.

        Then the database reads no row that is not in the answer.
        """
        query = self.query
        tokens = [one for one in self.conditions if isinstance(one, HasToken)]
        return (
            query.sort is Sort.KEY
            and query.kinds is not None
            and len(query.kinds) == 1
            and len(query.scopes) == 1
            and query.scopes[0].namespaces is None
            and query.scopes[0].reserved
            and len(tokens) <= 1
            and all(one.wanted and len(one.tokens) == 1 for one in tokens)
            and all(
                isinstance(one, HasToken) or (isinstance(one, Column) and (one.name, one.operator) == ("ns", "="))
                for one in self.conditions
            )
        )

    def scopes_by_cluster(self) -> dict[str, tuple[VisibleScope, ...]]:
        grouped: dict[str, tuple[VisibleScope, ...]] = {}
        for scope in self.query.scopes:
            grouped[scope.cluster] = (*grouped.get(scope.cluster, ()), scope)
        return grouped


class VisiblePartitions(msgspec.Struct, frozen=True):
    """Partitions that are queried and visible, in these namespaces (None: all, and cluster-scoped objects)."""

    partitions: tuple[int, ...]
    namespaces: tuple[str, ...] | None
    reserved: bool


RESERVED_FROM, RESERVED_TO = RESERVED_PREFIX, f"{RESERVED_PREFIX[:-1]}."
"""The names that begin with the prefix, as a range: '.' follows '-'."""


def visible_partitions(query: Query, partitions: Iterable[tuple[int, str, str]]) -> tuple[VisiblePartitions, ...]:
    """The query's scopes as the numbers of partitions. Each of `partitions` is a number, its cluster and its kind.

    The result is empty if the caller may see nothing.
    """
    known = [entry for entry in partitions if query.kinds is None or entry[2] in query.kinds]
    found = []
    for scope in query.scopes:
        numbers = tuple(
            number
            for number, cluster, kind in known
            if cluster == scope.cluster and (scope.kinds is None or kind in scope.kinds)
        )
        if numbers and scope.namespaces != frozenset():
            namespaces = None if scope.namespaces is None else tuple(sorted(scope.namespaces))
            found.append(VisiblePartitions(numbers, namespaces, scope.reserved))
    return tuple(found)


def plan(query: Query) -> Plan:
    """Raises `BadSelectorError` for a field that the kind does not offer."""
    conditions: list[Condition] = []
    if query.namespace is not None:
        conditions.append(Column("ns", "=", _text(query.namespace)))
    if query.name is not None:
        conditions.append(Column("name", "=", _text(query.name)))
    conditions += (_label(requirement) for requirement in query.labels)
    conditions += (_field(query, requirement) for requirement in query.fields)
    if query.owned_by is not None:
        conditions.append(OwnedBy(_text(query.owned_by)))
    if query.name_contains:
        conditions.append(NameContains(_text(query.name_contains).lower()))
    if query.created_from is not None:
        conditions.append(Column("created", ">=", query.created_from))
    if query.created_before is not None:
        conditions.append(Column("created", "<", query.created_before))
    return Plan(query, tuple(conditions))


def _text(text: str) -> str:
    if "\0" in text or len(text) > 1024:
        raise BadSelectorError("a name or text in the query is longer than 1024 characters, or has a NUL character")
    return text


def _label(requirement: LabelRequirement) -> Condition:
    match requirement:
        case AnyOf(key, values):
            return HasToken(tuple(sorted(label_token(key, value) for value in values)))
        case NoneOf(key, values):
            return HasToken(tuple(sorted(label_token(key, value) for value in values)), wanted=False)
        case Present(key, wanted):
            return HasToken((label_key_token(key),), wanted=wanted)
        case Compared(key, operator, number):
            return LabelNumber(key, operator, number)


def _field(query: Query, requirement: FieldRequirement) -> Condition:
    match requirement.path:
        case "metadata.name":
            return Column("name", "=" if requirement.equal else "<>", requirement.value)
        case "metadata.namespace":
            return Column("ns", "=" if requirement.equal else "<>", requirement.value)
    for kind in query.kinds or ():
        if requirement.path not in selectable(kind, query.declared_fields):
            raise BadSelectorError(f"field label not supported: {requirement.path}")
    if not query.kinds:
        raise BadSelectorError("a field selector needs kinds, because each kind has other selectable fields")
    return HasToken((field_token(requirement.path, requirement.value),), wanted=requirement.equal)
