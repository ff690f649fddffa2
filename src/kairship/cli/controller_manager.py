"""`kairship controller-manager`: the process that runs the controllers; one of its replicas leads."""

from pathlib import Path
from typing import Annotated

import typer

from kairship.cli.addresses import AllowAddress, address_rule


def controller_manager(
    kubeconfig: Annotated[Path, typer.Option(help="Leads to the global cluster.", exists=True, dir_okay=False)],
    data_dir: Annotated[
        Path | None, typer.Option(help="Whose supervisor runs local instances; without it there is no such driver.")
    ] = None,
    backups: Annotated[Path | None, typer.Option(help="Where backups are kept; below --data-dir by default.")] = None,
    host: Annotated[str, typer.Option(help="Where health and metrics are served.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any that is free.")] = 0,
    allow_address: AllowAddress = None,
) -> None:
    """Run the controllers against a global cluster. Started by `kairship up`, and by a Deployment in production."""
    # Here and not above, because it takes a moment that other commands need not wait for.
    import uvloop

    from kairship.controllers import process

    kept = backups or (data_dir / "backups" if data_dir else None)
    if kept is None:
        raise typer.BadParameter("without --data-dir, --backups must say where backups are kept")
    settings = process.Settings(
        kubeconfig=kubeconfig,
        backups=kept,
        data_dir=data_dir,
        host=host,
        port=port,
        addresses=address_rule(allow_address),
    )
    uvloop.run(process.run(settings))
