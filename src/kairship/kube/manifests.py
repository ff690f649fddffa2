"""YAML manifests as people and projects ship them: several documents in a file, lists among them."""

from .decoding import Object
from .documents import load_documents
from .errors import ConfigError

# Several times the largest bundles in use, which are the CRDs of a whole product in one file.
_MAX_SIZE = 16 * 1024 * 1024
_MAX_PARTS = 500_000


def load_manifests(content: str | bytes) -> list[Object]:
    """Every object in `content`, in order; the items of a `List` one by one. Large files take a while: use a thread."""
    documents = load_documents(content, called="the manifest", max_size=_MAX_SIZE, max_parts=_MAX_PARTS)
    objects: list[Object] = []
    for number, document in enumerate(documents, start=1):
        if document is None:
            continue  # nothing but comments between two separators
        if not isinstance(document, dict) or not document.get("apiVersion") or not document.get("kind"):
            raise ConfigError(f"document {number} of the manifest has no apiVersion and kind")
        objects += (document.get("items") or []) if document["kind"] == "List" else [document]
    return objects
