"""Views that all Kubernetes objects have in common: their metadata, and the whole object as JSON.

`MIRROR` makes messages from objects of any kind. It copies fields by name, except those that have a view here.
"""

from typing import Any

import msgspec

from kairship.gen.kairship.types.v1alpha1.metadata_pb import ObjectMeta
from kairship.kube import Object
from kairship.rpc.views import LAST_APPLIED
from kairship.wire import ObjectMapper

_PLAIN = ObjectMapper()


def metadata_view(metadata: dict[str, Any]) -> ObjectMeta:
    shown = _PLAIN.of(ObjectMeta, metadata)
    shown.annotations.pop(LAST_APPLIED, None)
    return shown


MIRROR = ObjectMapper({ObjectMeta: metadata_view})


def as_json(obj: Object) -> str:
    """Returns the whole object without `managedFields`, which users do not read and which are half of the text."""
    metadata = {key: value for key, value in obj.get("metadata", {}).items() if key != "managedFields"}
    return msgspec.json.encode({**obj, "metadata": metadata}).decode()
