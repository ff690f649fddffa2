"""A watch request, and what the index needs to know of it."""

from collections.abc import Mapping

import msgspec

from kairship.index.negotiation import Format, negotiate
from kairship.index.query import Plan, Query, VisibleScope, plan
from kairship.index.records import is_partial
from kairship.index.selectable_fields import kind_name
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
    reserved: bool = True
    """Whether reserved namespaces are in the initial events. The parameters have to say it of those that follow."""

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
        """0 if the client accepts any revision; None if it is not a number, which the cluster has to refuse."""
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
        """The plan by which the index sends the initial events; None if the cluster has to send them."""
        if is_partial(self.kind):
            return None
        if not (negotiate(self.accept) is Format.PLAIN and self.parameters.keys() <= _UNDERSTOOD):
            return None
        if self.parameters.get("resourceVersionMatch") != "NotOlderThan":
            return None
        # Only a bookmark can tell a client where the initial events end.
        if self.parameters.get("allowWatchBookmarks") not in {"true", "1"}:
            return None
        try:
            return plan(
                Query(
                    scopes=(VisibleScope(self.cluster, reserved=self.reserved),),
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
        """The parameters of the plain watch that continues from `revision`."""
        initial_events_only = {"sendInitialEvents", "resourceVersionMatch"}
        return {
            **{name: value for name, value in self.parameters.items() if name not in initial_events_only},
            "watch": "true",
            "resourceVersion": str(revision),
        }
