"""`metav1.Status`, by which Kubernetes refuses a request: as a response, and as an ERROR event of a watch."""

import msgspec

from kairship.kube import Resource


def status(code: int, reason: str, message: str, *, retry_after: int | None = None) -> bytes:
    details = {} if retry_after is None else {"details": {"retryAfterSeconds": retry_after}}
    return msgspec.json.encode(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            **details,
            "code": code,
        }
    )


def not_found(resource: Resource, name: str) -> bytes:
    qualified = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
    return msgspec.json.encode(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": f'{qualified} "{name}" not found',
            "reason": "NotFound",
            "details": {"name": name, **({"group": resource.group} if resource.group else {}), "kind": resource.plural},
            "code": 404,
        }
    )


def error_event(body: bytes) -> bytes:
    """The ERROR event that ends a watch."""
    return b'{"type":"ERROR","object":' + body + b"}\n"


def expired(message: str) -> bytes:
    return status(410, "Expired", message)
