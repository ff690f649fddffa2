"""Which credential of a member Karmada's own tokens there go with.

Whoever replaces a credential has a reason to, so Karmada gets other tokens then, too. A credential that the plane has
renewed by itself is the same one: nobody took anything away, and other tokens would mean a restart of Karmada's
controllers. So a renewal leaves a label at the Secret, which holds for the renewed credential and for no other.
"""

import hashlib
from collections.abc import Mapping

from kairship.kube import Connection

RENEWED = "kpanda.io/renewed"
_EDITION = 8
_MARK = 32


def edition_of(connection: Connection, labels: Mapping[str, str] | None) -> str:
    """Of the credential in a Secret with these labels. Of what is secret in it, this tells nothing."""
    digest = _digest(connection)
    edition, _, mark = (labels or {}).get(RENEWED, "").partition(".")
    return edition if edition and mark == digest[:_MARK] else digest[:_EDITION]


def renewed_label(before: Connection, labels: Mapping[str, str] | None, renewed: Connection) -> str:
    """What `RENEWED` says at a Secret with these labels when its credential is followed by the renewed one."""
    return f"{edition_of(before, labels)}.{_digest(renewed)[:_MARK]}"


def _digest(connection: Connection) -> str:
    parts = (connection.server.encode(), connection.ca, connection.client_cert, connection.client_key)
    token = (connection.token or "").encode()
    return hashlib.sha256(b"\0".join(part or b"" for part in (*parts, token))).hexdigest()
