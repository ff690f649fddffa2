"""Replies of instances and members are foreign content: a browser must not run, embed, guess or store them.

Whoever controls a member decides what the member answers, and the native proxy serves that reply on the origin of the
plane, where a page could act as the signed-in user. Media types in which Kubernetes answers pass as they are, because
no browser runs them. Everything else is passed on as bytes to be saved.
"""

import re

from multidict import CIMultiDict

CONTAINMENT_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
"""The headers of every reply of the native proxy, whatever the instance or member says in their place."""

_PASSED_ON = frozenset(
    {
        "application/json",
        "application/jwk-set+json",
        "application/x-ndjson",
        "application/yaml",
        "application/cbor",
        "application/cbor-seq",
        "application/vnd.kubernetes.protobuf",
        "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
        "application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
        "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
        "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
        "application/vnd.google.protobuf",
        "application/openmetrics-text",
        "text/event-stream",
        "text/plain",
    }
)
# One media type with parameters. Browsers take the last type of a list, so a comma must not appear.
_MEDIA_TYPE = re.compile(r"([\w.+@-]+/[\w.+@-]+)(?:; ?[\w.-]+=[\w.+@/-]+)*", re.ASCII)
_BYTES = "application/octet-stream"


def contain_type(headers: CIMultiDict[str]) -> None:
    """Makes bytes to be saved of every reply whose media type is not known to be harmless."""
    types = headers.getall("Content-Type", [])
    if len(types) == 1:
        found = _MEDIA_TYPE.fullmatch(types[0])
        if found is not None and found[1].lower() in _PASSED_ON:
            return
    headers["Content-Type"] = _BYTES
    headers["Content-Disposition"] = "attachment"
