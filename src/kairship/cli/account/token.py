"""`kairship token`: what kubectl asks for before each of its commands. Nothing is loaded that it does not need."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from kairship.cli.account import signed_in
from kairship.cli.output import print_json


def token(
    server: Annotated[
        str | None, typer.Option(help="The plane that it is for: a token for another one is not printed.")
    ] = None,
) -> None:
    """Print a token for kubectl, as an ExecCredential."""
    signed_in.require_at(server)
    found = signed_in.load()
    if not found.is_fresh:
        found = _renewed()
    until = datetime.fromtimestamp(found.expires_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    print_json(
        {
            "apiVersion": "client.authentication.k8s.io/v1",
            "kind": "ExecCredential",
            "status": {"token": found.token, "expirationTimestamp": until},
        }
    )


def _renewed() -> signed_in.SignedIn:
    import asyncio

    from kairship.cli.account.rest import current

    return asyncio.run(current())
