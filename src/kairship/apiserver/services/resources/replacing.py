"""What a manifest makes of an object that exists. Pure functions.

People write manifests of what they mean. What Karmada notes on an object (which policy it follows) and what keeps it
until others are done with it is not theirs to leave out: without it the object would be taken for a new one.
"""

from kairship.kube import Object

_KARMADA = "karmada.io"
_KEPT = ("finalizers", "ownerReferences")


def replacement(manifest: Object, current: Object) -> Object:
    sent, has = manifest["metadata"], current["metadata"]
    metadata: Object = {
        **sent,
        "resourceVersion": sent.get("resourceVersion") or has["resourceVersion"],
        **{field: _with_karmadas(sent.get(field) or {}, has.get(field) or {}) for field in ("labels", "annotations")},
    }
    for field in _KEPT:
        if field not in sent and field in has:
            metadata[field] = has[field]
    metadata.pop("managedFields", None)
    return {**manifest, "metadata": metadata}


def _with_karmadas(sent: dict[str, str], has: dict[str, str]) -> dict[str, str]:
    return {**{key: value for key, value in has.items() if _is_karmadas(key)}, **sent}


def _is_karmadas(key: str) -> bool:
    domain = key.partition("/")[0]
    return domain == _KARMADA or domain.endswith(f".{_KARMADA}")
