"""`kairship apiserver`: the entrance, REST and gRPC."""

import asyncio
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kairship.cli.addresses import AllowAddress, address_rule

if TYPE_CHECKING:
    from kairship.rpc.role_channel import RoleAddress

_PUBLIC_URL = re.compile(r"https://[^/?#@\s]+")


def apiserver(
    kubeconfig: Annotated[
        Path,
        typer.Option(help="Leads to the global cluster.", exists=True, dir_okay=False, envvar="KAIRSHIP_KUBECONFIG"),
    ],
    ghippo: Annotated[str, typer.Option(help="host:port of global management.", envvar="KAIRSHIP_GHIPPO")],
    ghippo_ca: Annotated[Path, typer.Option(help="The authority of its certificate.", envvar="KAIRSHIP_GHIPPO_CA")],
    ghippo_token: Annotated[
        Path,
        typer.Option(help="A file with a token of ours for its audience.", envvar="KAIRSHIP_GHIPPO_TOKEN_FILE"),
    ],
    audit_dir: Annotated[
        Path,
        typer.Option(
            help="Where what people do is written down until global management has it; on a disk that stays.",
            file_okay=False,
            envvar="KAIRSHIP_AUDIT_DIR",
        ),
    ],
    host: Annotated[str, typer.Option(help="Where REST and gRPC are served.", envvar="KAIRSHIP_HOST")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of REST.", envvar="KAIRSHIP_PORT")] = 8443,
    grpc_port: Annotated[int, typer.Option(min=0, max=65535, help="Of gRPC.", envvar="KAIRSHIP_GRPC_PORT")] = 9443,
    ops_host: Annotated[
        str, typer.Option(help="Where health and metrics are served, in plain HTTP.", envvar="KAIRSHIP_OPS_HOST")
    ] = "127.0.0.1",
    ops_port: Annotated[
        int, typer.Option(min=0, max=65535, help="Of health and metrics.", envvar="KAIRSHIP_OPS_PORT")
    ] = 8081,
    tls_cert: Annotated[
        Path | None,
        typer.Option(help="The certificate, in PEM; needed beyond loopback.", envvar="KAIRSHIP_TLS_CERT"),
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its key.", envvar="KAIRSHIP_TLS_KEY")] = None,
    public_url: Annotated[
        str | None,
        typer.Option(
            help="https://host:port by which people reach this, for kubeconfigs.", envvar="KAIRSHIP_PUBLIC_URL"
        ),
    ] = None,
    public_ca: Annotated[
        Path | None,
        typer.Option(help="The authority of the certificate that they see there.", envvar="KAIRSHIP_PUBLIC_CA"),
    ] = None,
    karmada_version: Annotated[
        list[str] | None,
        typer.Option(
            help="A version that the driver `local` of the controller-manager offers, the newest first; repeatable.",
            envvar="KAIRSHIP_KARMADA_VERSIONS",
        ),
    ] = None,
    index: Annotated[
        Path | None,
        typer.Option(help="The directory of the index, written by kpanda on this machine.", envvar="KAIRSHIP_INDEX"),
    ] = None,
    index_url_file: Annotated[
        Path | None,
        typer.Option(
            help="A file with the URL of the index in PostgreSQL, instead of a directory.",
            envvar="KAIRSHIP_INDEX_URL_FILE",
        ),
    ] = None,
    kpanda: Annotated[
        str | None, typer.Option(help="host:port of container management.", envvar="KAIRSHIP_KPANDA")
    ] = None,
    kpanda_ca: Annotated[
        Path | None, typer.Option(help="The authority of its certificate.", envvar="KAIRSHIP_KPANDA_CA")
    ] = None,
    kpanda_token: Annotated[
        Path | None,
        typer.Option(help="A file with a token of ours for its audience.", envvar="KAIRSHIP_KPANDA_TOKEN_FILE"),
    ] = None,
    allow_address: AllowAddress = None,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(
            help="A network of load balancers whose X-Forwarded-For says where a request comes from; repeatable.",
            envvar="KAIRSHIP_TRUSTED_PROXIES",
        ),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes that serve.", envvar="KAIRSHIP_WORKERS")] = 1,
    linger: Annotated[
        float,
        typer.Option(min=0, help="Seconds to go on accepting after a stop was asked for.", envvar="KAIRSHIP_LINGER"),
    ] = 0.0,
    grace: Annotated[
        float, typer.Option(min=0, help="Seconds that requests then have to end.", envvar="KAIRSHIP_GRACE")
    ] = 30.0,
) -> None:
    """Serve the API. Started by `kairship up`, and by a Deployment in production."""
    # Here and not above, because it takes a moment that other commands need not wait for.
    from kairship.apiserver import process
    from kairship.apiserver.origins import Origins
    from kairship.apiserver.services import EXTERNAL, Offer
    from kairship.apiserver.services.instance.part import PublicAddress
    from kairship.apiserver.settings import Address, Settings
    from kairship.index.opening import IndexPlace
    from kairship.process.certificates import CertificateFiles
    from kairship.process.logs import log_as_json
    from kairship.resources import DriverName
    from kairship.rpc.role_channel import RoleAddress

    if (tls_cert is None) != (tls_key is None):
        raise typer.BadParameter("--tls-cert and --tls-key go together")
    if public_url is not None and not _PUBLIC_URL.fullmatch(public_url):
        raise typer.BadParameter("must be https://host:port, without a path", param_hint="--public-url")
    if index is not None and index_url_file is not None:
        raise typer.BadParameter("give --index or --index-url-file, not both")
    try:
        Origins.trusting(trusted_proxy or ())
    except ValueError as error:
        raise typer.BadParameter(f"--trusted-proxy: {error}") from None
    address_rule(allow_address)
    settings = Settings(
        rest=Address(host, port),
        grpc=Address(host, grpc_port),
        ops=Address(ops_host, ops_port),
        kubeconfig=kubeconfig,
        audit_dir=audit_dir,
        tls=CertificateFiles(tls_cert, tls_key) if tls_cert and tls_key else None,
        offers=(Offer(DriverName.LOCAL, tuple(karmada_version)), EXTERNAL) if karmada_version else (EXTERNAL,),
        index=IndexPlace(index, index_url_file),
        ghippo=RoleAddress(target=ghippo, ca=ghippo_ca, token=ghippo_token),
        kpanda=_role("kpanda", kpanda, kpanda_ca, kpanda_token),
        public=PublicAddress(public_url, public_ca) if public_url else None,
        allow_addresses=tuple(allow_address or ()),
        trusted_proxies=tuple(trusted_proxy or ()),
        workers=workers,
        linger=linger,
        grace=grace,
    )
    log_as_json()
    asyncio.run(process.run(settings))


def _role(name: str, target: str | None, ca: Path | None, token: Path | None) -> "RoleAddress | None":
    from kairship.rpc.role_channel import RoleAddress

    if target is None and ca is None and token is None:
        return None
    if target is None or ca is None or token is None:
        raise typer.BadParameter(f"--{name}, --{name}-ca and --{name}-token go together")
    return RoleAddress(target=target, ca=ca, token=token)
