"""Full-text search: the words that a person types, the hits, and the order of the hits.

Every word must be found in the object: in its name, kind, namespace, one of its labels or images. Words of one or two
letters match only at a beginning, because they occur nearly everywhere else. Hits are ranked by the part of the object
in which the first word was found, then by name. The order is total, so that a page continues exactly where the page
before it ended, whichever way a database took to find the hits.
"""

from enum import IntEnum

import msgspec

from kairship.index.query import VisibleScope
from kairship.index.selectors import BadSelectorError
from kairship.kube import Resource

MOST_WORDS = 16
_LONGEST = 256
SHORT = 3
"""Words with fewer letters match at beginnings only."""

# The short names of kinds that people type often, as kubectl has them.
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
    """The part of the object in which the first word was found, the best first."""

    NAME_BEGINS = 0
    NAME = 1
    KIND = 2
    NAMESPACE = 3
    LABEL = 4
    IMAGE = 5


class SearchPosition(msgspec.Struct, frozen=True, array_like=True, order=True):
    """The position of a hit in the order. No two hits have the same."""

    rank: int
    name: str
    cluster: str
    kind: str
    namespace: str


class Search(msgspec.Struct, frozen=True, kw_only=True):
    words: tuple[str, ...]
    scopes: tuple[VisibleScope, ...]
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
    """The words of a search. Raises `BadSelectorError` if the text cannot be searched for."""
    if "\0" in text or len(text) > _LONGEST:
        raise BadSelectorError(f"the search text is longer than {_LONGEST} characters, or has a NUL character")
    return tuple(dict.fromkeys(text.lower().split()))[:MOST_WORDS]


def names_kind(word: str, kind: str, resource: Resource) -> bool:
    """Whether a word is the name, or a part of the name, of a kind."""
    if _SHORT_NAMES.get(word) == kind:
        return True
    names = (kind, resource.kind.lower())
    return any(word in name for name in names) if len(word) >= SHORT else any(name.startswith(word) for name in names)
