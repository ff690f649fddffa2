"""The edition of a member's credential, which says whether Karmada's own tokens in the member are still right.

When a user replaces a credential, there is a reason to, so Karmada gets new tokens as well. A credential that the plane
has renewed by itself is of the same edition: no access was revoked, and new tokens would mean a restart of Karmada's
controllers. So a renewal puts a label on the Secret, which holds for the renewed credential and for no other.
"""

import hashlib
from collections.abc import Mapping

from kairship.kube import Connection

RENEWED = "kpanda.io/renewed"
_EDITION_LENGTH = 8
_DIGEST_LENGTH = 32


def edition_of(connection: Connection, labels: Mapping[str, str] | None) -> str:
    """The edition of the credential in a Secret with these labels. It reveals nothing of the credential."""
    digest = _digest(connection)
    edition, _, renewed = (labels or {}).get(RENEWED, "").partition(".")
    return edition if edition and renewed == digest[:_DIGEST_LENGTH] else digest[:_EDITION_LENGTH]


def renewed_label(before: Connection, labels: Mapping[str, str] | None, renewed: Connection) -> str:
    """The value of the label `RENEWED` after a renewal of the credential in a Secret with these labels."""
    return f"{edition_of(before, labels)}.{_digest(renewed)[:_DIGEST_LENGTH]}"


def _digest(connection: Connection) -> str:
    parts = (connection.server.encode(), connection.ca, connection.client_cert, connection.client_key)
    token = (connection.token or "").encode()
    return hashlib.sha256(b"\0".join(part or b"" for part in (*parts, token))).hexdigest()
