"""`kairship ghippo`: global management, behind the entrance."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer


def ghippo(
    kubeconfig: Annotated[
        Path,
        typer.Option(help="Leads to the global cluster.", exists=True, dir_okay=False, envvar="KAIRSHIP_KUBECONFIG"),
    ],
    data_dir: Annotated[
        Path,
        typer.Option(
            help="Where the key that secrets are sealed with is kept, and the database unless that is elsewhere.",
            file_okay=False,
            envvar="KAIRSHIP_GHIPPO_DATA",
        ),
    ],
    tls_cert: Annotated[Path, typer.Option(help="Its certificate, in PEM.", envvar="KAIRSHIP_TLS_CERT")],
    tls_key: Annotated[Path, typer.Option(help="The key of it.", envvar="KAIRSHIP_TLS_KEY")],
    database_url: Annotated[
        Path | None,
        typer.Option(
            help="A file with the address of a PostgreSQL database, which any number of replicas may share.",
            envvar="KAIRSHIP_DATABASE_URL_FILE",
        ),
    ] = None,
    first_password: Annotated[
        Path | None,
        typer.Option(
            help="A file with the password of the first administrator; removed when it has been changed.",
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
        typer.Option(help="Where the entrance of this plane takes bindings.", envvar="KAIRSHIP_WEBHOOK"),
    ] = None,
    webhook_ca: Annotated[
        Path | None, typer.Option(help="The authority of its certificate.", envvar="KAIRSHIP_WEBHOOK_CA")
    ] = None,
    host: Annotated[str, typer.Option(help="Where gRPC is served.", envvar="KAIRSHIP_HOST")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of gRPC.", envvar="KAIRSHIP_PORT")] = 9444,
    ops_host: Annotated[
        str, typer.Option(help="Where health and metrics are served, in plain HTTP.", envvar="KAIRSHIP_OPS_HOST")
    ] = "127.0.0.1",
    ops_port: Annotated[
        int, typer.Option(min=0, max=65535, help="Of health and metrics.", envvar="KAIRSHIP_OPS_PORT")
    ] = 8082,
    audit_days: Annotated[
        int, typer.Option(min=1, max=36500, help="How long the audit is kept.", envvar="KAIRSHIP_AUDIT_DAYS")
    ] = 365,
) -> None:
    """Serve identities, roles, workspaces and audit. Started by `kairship up`, and by a Deployment in production."""
    # Here and not above, because it takes a moment that other commands need not wait for.
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
        host=host,
        port=port,
        ops_host=ops_host,
        ops_port=ops_port,
        audit_days=audit_days,
    )
    asyncio.run(process.run(settings))
