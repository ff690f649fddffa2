"""The replacement of an object by a manifest that a user wrote.

Users leave out of a manifest what they did not write themselves. The labels and annotations of Karmada (which policy
the object follows), the finalizers and the owner references are kept nevertheless: without them Karmada would take the
object for a new one, or the object would be deleted without the clean-up.

A resourceVersion in a manifest says which version is to be replaced. But controllers write the status all the time, so
a manifest of the same generation, which counts the changes of the spec, is accepted as well.
"""

from kairship.apiserver.services.instance_clients import FIELD_MANAGER
from kairship.kube import Client, Conflict, Object, Resource
from kairship.rpc.calls import Call, patience

_ATTEMPTS = 10
_KARMADA_DOMAIN = "karmada.io"
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
    """Replaces the object and returns the result. `client` reads the object and, unless there is a `writer`, writes it.

    Raises `kube.Conflict` if the object is not the version that the manifest was made from.
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
            # Another writer was faster by milliseconds. Usually it was a controller that wrote the status.
            if not is_current or not attempts:
                raise


def replacement(manifest: Object, current: Object) -> Object:
    """Returns the object that the manifest makes of the current one. Pure."""
    sent, existing = manifest["metadata"], current["metadata"]
    same_generation = sent.get("generation") is not None and sent["generation"] == existing.get("generation")
    metadata: Object = {
        **sent,
        "resourceVersion": (not same_generation and sent.get("resourceVersion")) or existing["resourceVersion"],
        **{
            field: _with_karmada_keys(sent.get(field) or {}, existing.get(field) or {})
            for field in ("labels", "annotations")
        },
    }
    for field in _KEPT:
        metadata.pop(field, None)
        if existing.get(field):
            metadata[field] = existing[field]
    metadata.pop("managedFields", None)
    return {**manifest, "metadata": metadata}


def _with_karmada_keys(sent: dict[str, str], existing: dict[str, str]) -> dict[str, str]:
    return {**{key: value for key, value in existing.items() if _is_karmada_key(key)}, **sent}


def _is_karmada_key(key: str) -> bool:
    domain = key.partition("/")[0]
    return domain == _KARMADA_DOMAIN or domain.endswith(f".{_KARMADA_DOMAIN}")
