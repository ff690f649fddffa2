"""`kairship kpanda`: container management, a backend of the entrance."""

from pathlib import Path
from typing import Annotated

import typer

from kairship.cli.options import AllowAddress, MetricsTokenFile, address_rule
from kairship.process.loopback import LOOPBACK


def kpanda(
    kubeconfig: Annotated[
        Path,
        typer.Option(
            help="The kubeconfig of the global cluster.", exists=True, dir_okay=False, envvar="KAIRSHIP_KUBECONFIG"
        ),
    ],
    tls_cert: Annotated[Path, typer.Option(help="The server certificate, in PEM.", envvar="KAIRSHIP_TLS_CERT")],
    tls_key: Annotated[
        Path, typer.Option(help="The key of the server certificate, in PEM.", envvar="KAIRSHIP_TLS_KEY")
    ],
    index: Annotated[
        Path | None,
        typer.Option(help="The directory of the index. Only one process can write to it.", envvar="KAIRSHIP_INDEX"),
    ] = None,
    index_url_file: Annotated[
        Path | None,
        typer.Option(
            help="A file with the URL of the index in PostgreSQL, which several replicas can share.",
            envvar="KAIRSHIP_INDEX_URL_FILE",
        ),
    ] = None,
    allow_address: AllowAddress = None,
    exclude_kind: Annotated[
        list[str] | None,
        typer.Option(
            help="A kind that is not collected, for example `events` or `leases.coordination.k8s.io`. Repeatable.",
            envvar="KAIRSHIP_EXCLUDE_KINDS",
        ),
    ] = None,
    exclude_namespace: Annotated[
        list[str] | None,
        typer.Option(
            help="A namespace whose objects are not collected from any cluster. Repeatable.",
            envvar="KAIRSHIP_EXCLUDE_NAMESPACES",
        ),
    ] = None,
    most_objects: Annotated[
        int,
        typer.Option(
            min=1,
            help="How many objects of one cluster the index keeps. Beyond that its largest kinds are read there.",
            envvar="KAIRSHIP_MOST_OBJECTS",
        ),
    ] = 500_000,
    most_megabytes: Annotated[
        int,
        typer.Option(
            min=1,
            help="How many MiB the objects of one cluster may have in the index, likewise.",
            envvar="KAIRSHIP_MOST_MEGABYTES",
        ),
    ] = 1024,
    host: Annotated[str, typer.Option(help="The address on which gRPC is served.", envvar="KAIRSHIP_HOST")] = LOOPBACK,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port of gRPC.", envvar="KAIRSHIP_PORT")] = 9445,
    ops_host: Annotated[
        str,
        typer.Option(
            help="The address on which health and metrics are served, in plain HTTP.", envvar="KAIRSHIP_OPS_HOST"
        ),
    ] = LOOPBACK,
    ops_port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port of health and metrics.", envvar="KAIRSHIP_OPS_PORT")
    ] = 8083,
    metrics_token_file: MetricsTokenFile = None,
) -> None:
    """Register clusters and collect their objects. `kairship up` starts it, and in production a Deployment does."""
    # Imported here, because these imports take a moment and the other commands do not need them.
    import msgspec
    import uvloop

    from kairship.kpanda import process
    from kairship.kpanda.collector import CollectorSettings
    from kairship.kpanda.settings import Settings
    from kairship.process.certificates import CertificateFiles
    from kairship.resources.schema.scalars import Label

    try:
        collector = CollectorSettings(
            excluded_kinds=frozenset(exclude_kind or ()),
            most_objects=most_objects,
            most_bytes=most_megabytes << 20,
            excluded_namespaces=msgspec.convert(exclude_namespace or [], frozenset[Label]),
        )
    except msgspec.ValidationError:
        raise typer.BadParameter(
            "--exclude-namespace must be the name of a namespace: up to 63 characters of a-z, 0-9 and '-'"
        ) from None
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
        metrics_token=metrics_token_file,
    )
    uvloop.run(process.run(settings))
