"""`kairship ghippo`: global management, a backend of the entrance."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from kairship.cli.options import AllowAddress, MetricsTokenFile, address_rule
from kairship.process.loopback import LOOPBACK


def ghippo(
    kubeconfig: Annotated[
        Path,
        typer.Option(
            help="The kubeconfig of the global cluster.", exists=True, dir_okay=False, envvar="KAIRSHIP_KUBECONFIG"
        ),
    ],
    data_dir: Annotated[
        Path,
        typer.Option(
            help="The directory of the key that seals secrets, and of the database unless --database-url is given.",
            file_okay=False,
            envvar="KAIRSHIP_GHIPPO_DATA",
        ),
    ],
    tls_cert: Annotated[Path, typer.Option(help="The server certificate, in PEM.", envvar="KAIRSHIP_TLS_CERT")],
    tls_key: Annotated[
        Path, typer.Option(help="The key of the server certificate, in PEM.", envvar="KAIRSHIP_TLS_KEY")
    ],
    database_url: Annotated[
        Path | None,
        typer.Option(
            help="A file with the URL of a PostgreSQL database, which several replicas can share.",
            envvar="KAIRSHIP_DATABASE_URL_FILE",
        ),
    ] = None,
    first_password: Annotated[
        Path | None,
        typer.Option(
            help="A file with the password of the first administrator. It is deleted when the password is changed.",
            envvar="KAIRSHIP_FIRST_PASSWORD_FILE",
        ),
    ] = None,
    first_token: Annotated[
        Path | None,
        typer.Option(
            help="A file with an access token of the first administrator.", envvar="KAIRSHIP_FIRST_TOKEN_FILE"
        ),
    ] = None,
    webhook: Annotated[
        str | None,
        typer.Option(
            help="The URL at which the entrance of this plane receives access bindings.", envvar="KAIRSHIP_WEBHOOK"
        ),
    ] = None,
    webhook_ca: Annotated[
        Path | None,
        typer.Option(
            help="The authority that issued the entrance's certificate, in PEM.", envvar="KAIRSHIP_WEBHOOK_CA"
        ),
    ] = None,
    allow_address: AllowAddress = None,
    host: Annotated[str, typer.Option(help="The address on which gRPC is served.", envvar="KAIRSHIP_HOST")] = LOOPBACK,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port of gRPC.", envvar="KAIRSHIP_PORT")] = 9444,
    ops_host: Annotated[
        str,
        typer.Option(
            help="The address on which health and metrics are served, in plain HTTP.", envvar="KAIRSHIP_OPS_HOST"
        ),
    ] = LOOPBACK,
    ops_port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port of health and metrics.", envvar="KAIRSHIP_OPS_PORT")
    ] = 8082,
    metrics_token_file: MetricsTokenFile = None,
    audit_days: Annotated[
        int,
        typer.Option(min=1, max=36500, help="Days for which audit records are kept.", envvar="KAIRSHIP_AUDIT_DAYS"),
    ] = 365,
) -> None:
    """Serve users, roles, workspaces and audit. `kairship up` starts it, and in production a Deployment does."""
    # Imported here, because these imports take a moment and the other commands do not need them.
    from kairship.ghippo import process
    from kairship.ghippo.settings import Settings
    from kairship.process.certificates import CertificateFiles

    settings = Settings(
        kubeconfig=kubeconfig,
        data=data_dir,
        tls=CertificateFiles(tls_cert, tls_key),
        database_url=database_url,
        first_password=first_password,
        first_token=first_token,
        webhook=webhook,
        webhook_ca=webhook_ca,
        addresses=address_rule(allow_address),
        host=host,
        port=port,
        ops_host=ops_host,
        ops_port=ops_port,
        metrics_token=metrics_token_file,
        audit_days=audit_days,
    )
    asyncio.run(process.run(settings))
