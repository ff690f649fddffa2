"""Search as a person types: a question, what is found, and in which order.

Every word must be found in the object: in its name, kind, namespace, one of its labels or images. Words of one or two
letters are found only where something begins with them: they would be found nearly everywhere else. What is found is
ranked by the part in which the first word was found, then by name. The order is total, so that a page goes on exactly
where the one before ended, whichever way a database took to find them.
"""

from enum import IntEnum

import msgspec

from kairship.index.query import Scope
from kairship.index.selectors import BadSelectorError
from kairship.kube import Resource

MOST_WORDS = 16
_LONGEST = 256
SHORT = 3
"""Words with fewer letters are found at beginnings only."""

# What people call kinds that they type often.
_SHORT_NAMES = {
    "cm": "configmaps",
    "cj": "cronjobs.batch",
    "crd": "customresourcedefinitions.apiextensions.k8s.io",
    "ds": "daemonsets.apps",
    "hpa": "horizontalpodautoscalers.autoscaling",
    "ing": "ingresses.networking.k8s.io",
    "no": "nodes",
    "ns": "namespaces",
    "po": "pods",
    "pv": "persistentvolumes",
    "pvc": "persistentvolumeclaims",
    "rs": "replicasets.apps",
    "sa": "serviceaccounts",
    "sts": "statefulsets.apps",
    "svc": "services",
}


class Rank(IntEnum):
    """Where the first word was found; the best first."""

    NAME_BEGINS = 0
    NAME = 1
    KIND = 2
    NAMESPACE = 3
    LABEL = 4
    IMAGE = 5


class SearchPosition(msgspec.Struct, frozen=True, array_like=True, order=True):
    """Where in the order something was found. Nothing else has the same."""

    rank: int
    name: str
    cluster: str
    kind: str
    namespace: str


class Search(msgspec.Struct, frozen=True, kw_only=True):
    words: tuple[str, ...]
    scopes: tuple[Scope, ...]
    kinds: frozenset[str] | None = None
    namespace: str | None = None
    limit: int = 20
    after: SearchPosition | None = None


class Hit(msgspec.Struct, frozen=True):
    position: SearchPosition
    resource: Resource
    uid: str
    created: int
    body: bytes


def words_of(text: str) -> tuple[str, ...]:
    """Raises `BadSelectorError` for what is no text."""
    if "\0" in text or len(text) > _LONGEST:
        raise BadSelectorError("what is searched for is too long, or not text")
    return tuple(dict.fromkeys(text.lower().split()))[:MOST_WORDS]


def names_kind(word: str, kind: str, resource: Resource) -> bool:
    """Whether a word means a kind."""
    if _SHORT_NAMES.get(word) == kind:
        return True
    names = (kind, resource.kind.lower())
    return any(word in name for name in names) if len(word) >= SHORT else any(name.startswith(word) for name in names)
