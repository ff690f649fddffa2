"""Options that several processes have, with one meaning."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

if TYPE_CHECKING:
    from kairship.kube import AddressRule

AllowAddress: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        help="Connect to servers in this network although it is loopback, link-local or special. Repeatable.",
        envvar="KAIRSHIP_ALLOW_ADDRESSES",
    ),
]
"""Of every process that connects to servers whose addresses users have entered."""

ReserveNamespace: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        help="Reserve this namespace of every instance and member for Instance Admins, as kube-system is. Repeatable; "
        "apiserver and controller-manager need the same names.",
        envvar="KAIRSHIP_RESERVED_NAMESPACES",
    ),
]
"""Of the processes that have to agree which namespaces are reserved."""

MetricsTokenFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        help="A file with the token that /metrics asks for. Without it nobody gets metrics, which name clusters.",
        envvar="KAIRSHIP_METRICS_TOKEN_FILE",
    ),
]
"""Of every process that serves metrics."""


def address_rule(allowed: list[str] | None) -> "AddressRule":
    from kairship.kube import AddressRule

    try:
        return AddressRule.allowing(allowed or ())
    except ValueError as error:
        raise typer.BadParameter(f"--allow-address: {error}") from None


def reserved_namespaces(names: list[str] | None) -> tuple[str, ...]:
    """The names in their order. Raises `BadParameter` if one of them cannot be the name of a namespace."""
    import msgspec

    from kairship.resources.schema.scalars import Label

    try:
        return tuple(sorted(msgspec.convert(names or [], frozenset[Label])))
    except msgspec.ValidationError:
        raise typer.BadParameter(
            "--reserve-namespace must be the name of a namespace: up to 63 characters of a-z, 0-9 and '-'"
        ) from None
