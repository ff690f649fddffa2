"""What all objects of Kubernetes have in common: how they become messages, and text.

`MIRROR` makes messages of objects of any kind: fields are taken over by their names, but for the few here.
"""

from typing import Any

import msgspec

from kairship.gen.kairship.types.v1alpha1.metadata_pb import ObjectMeta
from kairship.kube import Object
from kairship.rpc.views import LAST_APPLIED
from kairship.wire import Mirror

_PLAIN = Mirror()


def metadata_view(metadata: dict[str, Any]) -> ObjectMeta:
    shown = _PLAIN.of(ObjectMeta, metadata)
    shown.annotations.pop(LAST_APPLIED, None)
    return shown


MIRROR = Mirror({ObjectMeta: metadata_view})


def as_json(obj: Object) -> str:
    """An object whole, without the record of who wrote which field: nobody reads it, and it is half of the text."""
    metadata = {key: value for key, value in obj.get("metadata", {}).items() if key != "managedFields"}
    return msgspec.json.encode({**obj, "metadata": metadata}).decode()
