"""`kairship kpanda`: container management, behind the entrance."""

from pathlib import Path
from typing import Annotated

import typer

from kairship.cli.addresses import AllowAddress, address_rule


def kpanda(
    kubeconfig: Annotated[
        Path,
        typer.Option(help="Leads to the global cluster.", exists=True, dir_okay=False, envvar="KAIRSHIP_KUBECONFIG"),
    ],
    tls_cert: Annotated[Path, typer.Option(help="Its certificate, in PEM.", envvar="KAIRSHIP_TLS_CERT")],
    tls_key: Annotated[Path, typer.Option(help="The key of it.", envvar="KAIRSHIP_TLS_KEY")],
    index: Annotated[
        Path | None,
        typer.Option(help="The directory of the index; one process only can write there.", envvar="KAIRSHIP_INDEX"),
    ] = None,
    index_url_file: Annotated[
        Path | None,
        typer.Option(
            help="A file with the URL of the index in PostgreSQL, which any number of replicas may share.",
            envvar="KAIRSHIP_INDEX_URL_FILE",
        ),
    ] = None,
    allow_address: AllowAddress = None,
    exclude_kind: Annotated[
        list[str] | None,
        typer.Option(
            help="A kind that is not collected, as `events` or `leases.coordination.k8s.io`; repeatable.",
            envvar="KAIRSHIP_EXCLUDE_KINDS",
        ),
    ] = None,
    exclude_namespace: Annotated[
        list[str] | None,
        typer.Option(
            help="A namespace of which nothing is collected, in any cluster; repeatable.",
            envvar="KAIRSHIP_EXCLUDE_NAMESPACES",
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="Where gRPC is served.", envvar="KAIRSHIP_HOST")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of gRPC.", envvar="KAIRSHIP_PORT")] = 9445,
    ops_host: Annotated[
        str, typer.Option(help="Where health and metrics are served, in plain HTTP.", envvar="KAIRSHIP_OPS_HOST")
    ] = "127.0.0.1",
    ops_port: Annotated[
        int, typer.Option(min=0, max=65535, help="Of health and metrics.", envvar="KAIRSHIP_OPS_PORT")
    ] = 8083,
) -> None:
    """Register clusters and collect what is in them. Started by `kairship up`, and by a Deployment in production."""
    # Here and not above, because it takes a moment that other commands need not wait for.
    import msgspec
    import uvloop

    from kairship.kpanda import process
    from kairship.kpanda.collector import CollectorSettings
    from kairship.kpanda.settings import Settings
    from kairship.process.certificates import CertificateFiles
    from kairship.resources.scalars import Label

    try:
        collector = CollectorSettings(
            excluded_kinds=frozenset(exclude_kind or ()),
            excluded_namespaces=msgspec.convert(exclude_namespace or [], frozenset[Label]),
        )
    except msgspec.ValidationError:
        raise typer.BadParameter("--exclude-namespace: that is no name of a namespace") from None
    settings = Settings(
        kubeconfig=kubeconfig,
        tls=CertificateFiles(tls_cert, tls_key),
        index=index,
        index_url_file=index_url_file,
        addresses=address_rule(allow_address),
        collector=collector,
        host=host,
        port=port,
        ops_host=ops_host,
        ops_port=ops_port,
    )
    uvloop.run(process.run(settings))
