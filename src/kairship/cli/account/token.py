"""`kairship token`: kubectl's credential plugin.

kubectl runs it before each of its commands, so this module imports only what it needs.
"""

from datetime import UTC, datetime
from typing import Annotated

import typer

from kairship.cli.account import session
from kairship.cli.output import print_json


def token(
    server: Annotated[
        str | None, typer.Option(help="The plane that the token is for. A token for another plane is not printed.")
    ] = None,
) -> None:
    """Print an access token for kubectl, as an ExecCredential."""
    session.require_at(server)
    current = session.load()
    if not current.is_fresh:
        current = _renewed()
    until = datetime.fromtimestamp(current.expires_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    print_json(
        {
            "apiVersion": "client.authentication.k8s.io/v1",
            "kind": "ExecCredential",
            "status": {"token": current.token, "expirationTimestamp": until},
        }
    )


def _renewed() -> session.StoredSession:
    import asyncio

    from kairship.cli.account.rest_client import current_session

    return asyncio.run(current_session())
