"""What all objects of Kubernetes have in common, as messages.

`MIRROR` makes messages of objects of any kind: fields are taken over by their names, but for the few here.
"""

from typing import Any

from kairship.gen.kairship.types.v1alpha1.metadata_pb import ObjectMeta
from kairship.wire import Mirror

# A second copy of the object, of a Secret with its values.
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

_PLAIN = Mirror()


def metadata_view(metadata: dict[str, Any]) -> ObjectMeta:
    shown = _PLAIN.of(ObjectMeta, metadata)
    shown.annotations.pop(LAST_APPLIED, None)
    return shown


MIRROR = Mirror({ObjectMeta: metadata_view})
