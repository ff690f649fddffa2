"""A watch as a client asks for it."""

from collections.abc import Mapping

import msgspec

from kairship.index.accept import Format, wanted
from kairship.index.fields import kind_name
from kairship.index.query import Plan, Query, Scope, plan
from kairship.index.records import is_partial
from kairship.index.selectors import BadSelectorError, parse_fields, parse_labels
from kairship.kube import Resource

_LONGEST_WATCH = 3600.0
_UNDERSTOOD = frozenset(
    (
        *("watch", "resourceVersion", "resourceVersionMatch", "sendInitialEvents"),
        *("allowWatchBookmarks", "timeoutSeconds", "labelSelector", "fieldSelector"),
    )
)


class WatchRequest(msgspec.Struct, frozen=True):
    cluster: str
    resource: Resource
    parameters: Mapping[str, str]
    namespace: str | None = None
    accept: str = "application/json"
    declared_fields: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        return kind_name(self.resource)

    @property
    def path(self) -> str:
        return self.resource.path(namespace=self.namespace)

    @property
    def wants_initial_events(self) -> bool:
        return self.parameters.get("sendInitialEvents") in {"true", "1"}

    @property
    def revision(self) -> int | None:
        """0 for "whatever you have"; None for what is no number, which is the cluster's to refuse."""
        text = self.parameters.get("resourceVersion", "")
        if not text:
            return 0
        return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None

    @property
    def longest_silence(self) -> float:
        try:
            return min(_LONGEST_WATCH, float(self.parameters.get("timeoutSeconds", _LONGEST_WATCH))) + 30.0
        except ValueError:
            return _LONGEST_WATCH

    def plan(self) -> Plan | None:
        """How the index answers its beginning; None when the cluster has to."""
        if is_partial(self.kind):
            return None
        if not (wanted(self.accept) is Format.PLAIN and self.parameters.keys() <= _UNDERSTOOD):
            return None
        if self.parameters.get("resourceVersionMatch") != "NotOlderThan":
            return None
        # Without bookmarks a client cannot be told where the beginning ends.
        if self.parameters.get("allowWatchBookmarks") not in {"true", "1"}:
            return None
        try:
            return plan(
                Query(
                    scopes=(Scope(self.cluster),),
                    kinds=frozenset((self.kind,)),
                    namespace=self.namespace,
                    labels=parse_labels(self.parameters.get("labelSelector", "")),
                    fields=parse_fields(self.parameters.get("fieldSelector", "")),
                    declared_fields=self.declared_fields,
                )
            )
        except BadSelectorError:
            return None

    def continued_from(self, revision: int) -> dict[str, str]:
        """The parameters of the plain watch that goes on from `revision`."""
        own = {"sendInitialEvents", "resourceVersionMatch"}
        return {
            **{name: value for name, value in self.parameters.items() if name not in own},
            "watch": "true",
            "resourceVersion": str(revision),
        }
