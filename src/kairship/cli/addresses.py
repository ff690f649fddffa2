"""The option `--allow-address` of every process that connects to servers whose addresses users have entered."""

from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

if TYPE_CHECKING:
    from kairship.kube import AddressRule

AllowAddress: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        help="Connect to clusters in this network although it is loopback, link-local or special. Repeatable.",
        envvar="KAIRSHIP_ALLOW_ADDRESSES",
    ),
]


def address_rule(allowed: list[str] | None) -> "AddressRule":
    from kairship.kube import AddressRule

    try:
        return AddressRule.allowing(allowed or ())
    except ValueError as error:
        raise typer.BadParameter(f"--allow-address: {error}") from None
