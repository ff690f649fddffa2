"""Replacing an object by a manifest that somebody wrote.

People write manifests of what they mean. What Karmada notes on an object (which policy it follows) and what keeps it
until others are done with it is not theirs to leave out: without it the object would be taken for a new one, or go with
nobody having cleaned up.

A version in a manifest says which one is to be replaced. But controllers write the status all the time, so one of the
same generation, which counts the changes of the spec, is as good as the same.
"""

from kairship.apiserver.services.reach import FIELD_MANAGER
from kairship.kube import Client, Conflict, Object, Resource
from kairship.rpc.calls import Call, patience

_ATTEMPTS = 10
_KARMADA = "karmada.io"
_KEPT = ("finalizers", "ownerReferences")


async def replace(
    client: Client,
    resource: Resource,
    manifest: Object,
    call: Call,
    *,
    namespace: str | None = None,
    writer: Client | None = None,
) -> Object:
    """The object as it is then. `writer` is whoever writes it, if not whoever reads it.

    Raises `kube.Conflict` if it is not the one that the manifest was made of.
    """
    name, attempts = manifest["metadata"]["name"], _ATTEMPTS
    while True:
        current = await client.get(resource, name, namespace=namespace, timeout=patience(call))
        wanted = replacement(manifest, current)
        is_current = wanted["metadata"]["resourceVersion"] == current["metadata"]["resourceVersion"]
        attempts -= 1
        try:
            return await (writer or client).replace(
                resource, wanted, namespace=namespace, field_manager=FIELD_MANAGER, timeout=patience(call)
            )
        except Conflict:
            # Somebody was faster by milliseconds, and most often it was a controller with its status.
            if not is_current or not attempts:
                raise


def replacement(manifest: Object, current: Object) -> Object:
    """What the manifest makes of the object. Pure."""
    sent, has = manifest["metadata"], current["metadata"]
    same = sent.get("generation") is not None and sent["generation"] == has.get("generation")
    metadata: Object = {
        **sent,
        "resourceVersion": (not same and sent.get("resourceVersion")) or has["resourceVersion"],
        **{field: _with_karmadas(sent.get(field) or {}, has.get(field) or {}) for field in ("labels", "annotations")},
    }
    for field in _KEPT:
        metadata.pop(field, None)
        if has.get(field):
            metadata[field] = has[field]
    metadata.pop("managedFields", None)
    return {**manifest, "metadata": metadata}


def _with_karmadas(sent: dict[str, str], has: dict[str, str]) -> dict[str, str]:
    return {**{key: value for key, value in has.items() if _is_karmadas(key)}, **sent}


def _is_karmadas(key: str) -> bool:
    domain = key.partition("/")[0]
    return domain == _KARMADA or domain.endswith(f".{_KARMADA}")
