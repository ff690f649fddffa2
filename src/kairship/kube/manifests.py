"""YAML manifests as people and projects ship them: several documents in a file, lists among them."""

import yaml

from .decoding import Object
from .errors import ConfigError


class _Loader(yaml.CSafeLoader):
    """YAML as Kubernetes reads it: a date stays text, and so does a lone `=`, which occurs in the schemas of CRDs."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith((":timestamp", ":value"))]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def load_manifests(content: str | bytes) -> list[Object]:
    """Every object in `content`, in order; the items of a `List` one by one. Large files take a while: use a thread."""
    try:
        documents = list(yaml.load_all(content, Loader=_Loader))
    except yaml.YAMLError as error:
        # Not chained: PyYAML quotes the offending lines, which may be those of a Secret.
        mark = getattr(error, "problem_mark", None)
        raise ConfigError("the manifest is not YAML" + (f" (line {mark.line + 1})" if mark else "")) from None
    objects: list[Object] = []
    for number, document in enumerate(documents, start=1):
        if document is None:
            continue  # nothing but comments between two separators
        if not isinstance(document, dict) or not document.get("apiVersion") or not document.get("kind"):
            raise ConfigError(f"document {number} of the manifest has no apiVersion and kind")
        objects += (document.get("items") or []) if document["kind"] == "List" else [document]
    return objects
