"""`kairship apiserver`: the entrance of the plane, which serves REST and gRPC."""

import asyncio
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kairship.cli.options import AllowAddress, MetricsTokenFile, ReserveNamespace, address_rule, reserved_namespaces
from kairship.process.loopback import LOOPBACK

if TYPE_CHECKING:
    from kairship.rpc.backend_channel import BackendAddress

_PUBLIC_URL = re.compile(r"https://[^/?#@\s]+")


def apiserver(
    kubeconfig: Annotated[
        Path,
        typer.Option(
            help="The kubeconfig of the global cluster.", exists=True, dir_okay=False, envvar="KAIRSHIP_KUBECONFIG"
        ),
    ],
    ghippo: Annotated[str, typer.Option(help="host:port of global management (ghippo).", envvar="KAIRSHIP_GHIPPO")],
    ghippo_ca: Annotated[
        Path, typer.Option(help="The authority that issued ghippo's certificate, in PEM.", envvar="KAIRSHIP_GHIPPO_CA")
    ],
    ghippo_token: Annotated[
        Path,
        typer.Option(
            help="A file with a ServiceAccount token of the apiserver for ghippo's audience.",
            envvar="KAIRSHIP_GHIPPO_TOKEN_FILE",
        ),
    ],
    audit_dir: Annotated[
        Path,
        typer.Option(
            help="The spool of audit records that ghippo does not have yet. It must be on a persistent disk.",
            file_okay=False,
            envvar="KAIRSHIP_AUDIT_DIR",
        ),
    ],
    host: Annotated[
        str, typer.Option(help="The address on which REST and gRPC are served.", envvar="KAIRSHIP_HOST")
    ] = LOOPBACK,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port of REST.", envvar="KAIRSHIP_PORT")] = 8443,
    grpc_port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port of gRPC.", envvar="KAIRSHIP_GRPC_PORT")
    ] = 9443,
    ops_host: Annotated[
        str,
        typer.Option(
            help="The address on which health and metrics are served, in plain HTTP.", envvar="KAIRSHIP_OPS_HOST"
        ),
    ] = LOOPBACK,
    ops_port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port of health and metrics.", envvar="KAIRSHIP_OPS_PORT")
    ] = 8081,
    tls_cert: Annotated[
        Path | None,
        typer.Option(
            help="The server certificate, in PEM. Required unless --host is a loopback address.",
            envvar="KAIRSHIP_TLS_CERT",
        ),
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option(help="The key of the server certificate, in PEM.", envvar="KAIRSHIP_TLS_KEY")
    ] = None,
    public_url: Annotated[
        str | None,
        typer.Option(
            help="https://host:port by which users call this server; it is written into kubeconfigs.",
            envvar="KAIRSHIP_PUBLIC_URL",
        ),
    ] = None,
    public_ca: Annotated[
        Path | None,
        typer.Option(
            help="The authority that issued the certificate of --public-url, in PEM.", envvar="KAIRSHIP_PUBLIC_CA"
        ),
    ] = None,
    karmada_version: Annotated[
        list[str] | None,
        typer.Option(
            help="A Karmada version that the driver `local` offers. Repeatable, the newest version first.",
            envvar="KAIRSHIP_KARMADA_VERSIONS",
        ),
    ] = None,
    index: Annotated[
        Path | None,
        typer.Option(help="The directory of the index that kpanda writes on this machine.", envvar="KAIRSHIP_INDEX"),
    ] = None,
    index_url_file: Annotated[
        Path | None,
        typer.Option(
            help="A file with the URL of the index in PostgreSQL, instead of --index.",
            envvar="KAIRSHIP_INDEX_URL_FILE",
        ),
    ] = None,
    kpanda: Annotated[
        str | None, typer.Option(help="host:port of container management (kpanda).", envvar="KAIRSHIP_KPANDA")
    ] = None,
    kpanda_ca: Annotated[
        Path | None,
        typer.Option(help="The authority that issued kpanda's certificate, in PEM.", envvar="KAIRSHIP_KPANDA_CA"),
    ] = None,
    kpanda_token: Annotated[
        Path | None,
        typer.Option(
            help="A file with a ServiceAccount token of the apiserver for kpanda's audience.",
            envvar="KAIRSHIP_KPANDA_TOKEN_FILE",
        ),
    ] = None,
    metrics_token_file: MetricsTokenFile = None,
    allow_address: AllowAddress = None,
    reserve_namespace: ReserveNamespace = None,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(
            help="A network of load balancers whose header X-Forwarded-For is trusted. Repeatable.",
            envvar="KAIRSHIP_TRUSTED_PROXIES",
        ),
    ] = None,
    workers: Annotated[
        int, typer.Option(min=1, max=64, help="The number of worker processes.", envvar="KAIRSHIP_WORKERS")
    ] = 1,
    linger: Annotated[
        float,
        typer.Option(
            min=0, help="Seconds for which new requests are still accepted after SIGTERM.", envvar="KAIRSHIP_LINGER"
        ),
    ] = 0.0,
    grace: Annotated[
        float, typer.Option(min=0, help="Seconds that running requests then have to finish.", envvar="KAIRSHIP_GRACE")
    ] = 30.0,
) -> None:
    """Serve the API. `kairship up` starts it, and in production a Deployment does."""
    # Imported here, because these imports take a moment and the other commands do not need them.
    from kairship.apiserver import process
    from kairship.apiserver.flowcontrol.client_address import TrustedProxies
    from kairship.apiserver.services import EXTERNAL, AvailableDriver, PublicAddress
    from kairship.apiserver.settings import Address, Settings
    from kairship.index.index_access import IndexLocation
    from kairship.process.certificates import CertificateFiles
    from kairship.process.logs import log_as_json
    from kairship.resources import DriverName
    from kairship.rpc.backend_channel import BackendAddress

    if (tls_cert is None) != (tls_key is None):
        raise typer.BadParameter("give both --tls-cert and --tls-key, or neither")
    if public_url is not None and not _PUBLIC_URL.fullmatch(public_url):
        raise typer.BadParameter("must be https://host:port, without a path", param_hint="--public-url")
    if index is not None and index_url_file is not None:
        raise typer.BadParameter("give --index or --index-url-file, not both")
    try:
        TrustedProxies.parse(trusted_proxy or ())
    except ValueError as error:
        raise typer.BadParameter(f"--trusted-proxy: {error}") from None
    address_rule(allow_address)
    settings = Settings(
        rest=Address(host, port),
        grpc=Address(host, grpc_port),
        ops=Address(ops_host, ops_port),
        metrics_token=metrics_token_file,
        kubeconfig=kubeconfig,
        audit_dir=audit_dir,
        tls=CertificateFiles(tls_cert, tls_key) if tls_cert and tls_key else None,
        drivers=(AvailableDriver(DriverName.LOCAL, tuple(karmada_version)), EXTERNAL)
        if karmada_version
        else (EXTERNAL,),
        index=IndexLocation(index, index_url_file),
        ghippo=BackendAddress(target=ghippo, ca=ghippo_ca, token=ghippo_token),
        kpanda=_backend_address("kpanda", kpanda, kpanda_ca, kpanda_token),
        public=PublicAddress(public_url, public_ca) if public_url else None,
        allow_addresses=tuple(allow_address or ()),
        reserved_namespaces=reserved_namespaces(reserve_namespace),
        trusted_proxies=tuple(trusted_proxy or ()),
        workers=workers,
        linger=linger,
        grace=grace,
    )
    log_as_json()
    asyncio.run(process.run(settings))


def _backend_address(name: str, target: str | None, ca: Path | None, token: Path | None) -> "BackendAddress | None":
    from kairship.rpc.backend_channel import BackendAddress

    if target is None and ca is None and token is None:
        return None
    if target is None or ca is None or token is None:
        raise typer.BadParameter(f"give all of --{name}, --{name}-ca and --{name}-token, or none of them")
    return BackendAddress(target=target, ca=ca, token=token)
