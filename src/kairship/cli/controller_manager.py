"""`kairship controller-manager`: the process that runs the controllers. One of its replicas is the leader."""

from pathlib import Path
from typing import Annotated

import typer

from kairship.cli.options import AllowAddress, MetricsTokenFile, ReserveNamespace, address_rule, reserved_namespaces
from kairship.process.loopback import LOOPBACK


def controller_manager(
    kubeconfig: Annotated[
        Path, typer.Option(help="The kubeconfig of the global cluster.", exists=True, dir_okay=False)
    ],
    data_dir: Annotated[
        Path | None,
        typer.Option(
            help="The data directory whose supervisor runs local instances. Without it there is no driver `local`."
        ),
    ] = None,
    backups: Annotated[
        Path | None, typer.Option(help="The directory of backups; by default `backups` in --data-dir.")
    ] = None,
    host: Annotated[str, typer.Option(help="The address on which health and metrics are served.")] = LOOPBACK,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port of health and metrics; 0 takes any free port.")
    ] = 0,
    metrics_token_file: MetricsTokenFile = None,
    allow_address: AllowAddress = None,
    reserve_namespace: ReserveNamespace = None,
) -> None:
    """Run the controllers against a global cluster. `kairship up` starts it, and in production a Deployment does."""
    # Imported here, because these imports take a moment and the other commands do not need them.
    import uvloop

    from kairship.controllers import process

    backup_dir = backups or (data_dir / "backups" if data_dir else None)
    if backup_dir is None:
        raise typer.BadParameter("give --backups, the directory of backups, or --data-dir")
    settings = process.Settings(
        kubeconfig=kubeconfig,
        backups=backup_dir,
        data_dir=data_dir,
        host=host,
        port=port,
        metrics_token=metrics_token_file,
        addresses=address_rule(allow_address),
        reserved_namespaces=reserved_namespaces(reserve_namespace),
    )
    uvloop.run(process.run(settings))
