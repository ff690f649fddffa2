"""Content negotiation: which of the index's formats a client's Accept header asks for.

The index has JSON as it is stored, PartialObjectMetadata and Tables. An API server takes the first clause, by quality,
that it can serve. A request that it would answer in another format (protobuf, YAML) or version is not for the index.
"""

from enum import Enum
from functools import lru_cache

_SERVED = frozenset(("application/json", "application/yaml", "application/cbor", "application/vnd.kubernetes.protobuf"))
_ANY = frozenset(("", "*/*", "application/*"))


class Format(Enum):
    PLAIN = "the object or list itself"
    TABLE = "Table"
    METADATA = "PartialObjectMetadata"
    METADATA_LIST = "PartialObjectMetadataList"


@lru_cache(maxsize=256)
def negotiate(accept: str) -> Format | None:
    """The format that the header asks for; None if the index does not have it."""
    for media, parameters in _clauses(accept):
        if media not in _SERVED and media not in _ANY:
            continue
        if media != "application/json" and (media not in _ANY or "as" in parameters):
            return None
        if parameters.keys() & {"pretty", "sv"}:
            return None
        if "as" not in parameters:
            return Format.PLAIN
        kind, version = parameters["as"], (parameters.get("g"), parameters.get("v"))
        known = kind in {each.value for each in Format} - {Format.PLAIN.value}
        return Format(kind) if known and version == ("meta.k8s.io", "v1") else None
    return None


def _clauses(accept: str) -> list[tuple[str, dict[str, str]]]:
    found = []
    for clause in accept.split(","):
        media, *rest = (part.strip() for part in clause.split(";"))
        parameters = {name.strip(): value.strip() for name, _, value in (part.partition("=") for part in rest)}
        found.append((media, parameters))
    # Clauses of equal quality stay in the order of the header.
    return sorted(found, key=lambda clause: (-_quality(clause[1]), clause[0].startswith("*"), clause[0].endswith("*")))


def _quality(parameters: dict[str, str]) -> float:
    try:
        return float(parameters.get("q", "1"))
    except ValueError:
        return 1.0
