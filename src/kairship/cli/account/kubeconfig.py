"""`kairship kubeconfig`: gives kubectl, helm and other Kubernetes clients access to an instance."""

import asyncio
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer
import yaml

from kairship.cli.account import kubeconfig_file
from kairship.cli.account.rest_client import RequestRefused, current_session, rest
from kairship.cli.account.session import StoredSession
from kairship.cli.output import Format, Output, print_json, say
from kairship.rpc import native_access
from kairship.rpc.native_access import NativeEndpoint

_MANAGEMENT = "/apis/kairship.io/v1alpha1"


def kubeconfig(
    instance: Annotated[str, typer.Argument(help="The instance to work with.")],
    cluster: Annotated[
        str | None, typer.Option(help="A member cluster of the instance, which is accessed through the instance.")
    ] = None,
    token: Annotated[
        bool,
        typer.Option(
            "--token",
            help="Write an access token into the kubeconfig, for programs, instead of using `kairship token`.",
        ),
    ] = False,
    valid: Annotated[
        int | None,
        typer.Option(min=1, help="With --token: the seconds that the token is valid; by default as long as allowed."),
    ] = None,
    by_name: Annotated[
        bool,
        typer.Option(
            "--by-name", help="Use a TLS server name instead of a path, for clients that drop the path of a server."
        ),
    ] = False,
    context: Annotated[str | None, typer.Option(help="The name of the context; by default kairship-INSTANCE.")] = None,
    file: Annotated[
        Path | None,
        typer.Option("--kubeconfig", help="The file to write to; by default $KUBECONFIG or ~/.kube/config."),
    ] = None,
    switch: Annotated[bool, typer.Option(help="Make it the current context.")] = True,
    output: Output = Format.TABLE,
) -> None:
    """Add an instance to your kubeconfig. Other entries are not changed."""
    if valid is not None and not token:
        raise typer.BadParameter("can only be used with --token", param_hint="--valid")
    way = NativeEndpoint(instance, cluster)
    name = context or f"kairship-{way.context_name}"
    document = asyncio.run(_document(way, token=token, valid=valid, by_name=by_name))
    path = kubeconfig_file.merge(_renamed(document, name), kubeconfig_file.files(file), switch=switch)
    if output is Format.JSON:
        print_json({"context": name, "kubeconfig": path})
    else:
        say(f"Added the context {name} to {path}. Try: kubectl --context {name} get deployments -A")


async def _document(way: NativeEndpoint, *, token: bool, valid: int | None, by_name: bool) -> Any:
    current = await current_session()
    async with rest(current.server, current.ca) as client:
        if token:
            body = {"cluster": way.cluster or "", "byName": by_name, **({"expirationSeconds": valid} if valid else {})}
            path = f"{_MANAGEMENT}/instances/{quote(way.instance, safe='')}/kubeconfig"
            issued = await client.call("POST", path, body, token=current.token, base="")
            return yaml.load(issued["kubeConfigString"], yaml.CSafeLoader)
        # This request fails now, with a clear message, if the user may not see such an instance.
        await client.call("GET", f"{quote(way.path)}/version", token=current.token, base="")
    return _with_credential_plugin(way, current, by_name=by_name)


def _with_credential_plugin(way: NativeEndpoint, current: StoredSession, *, by_name: bool) -> Any:
    """A kubeconfig that gets its tokens from `kairship token`."""
    host = way.host if by_name else None
    if by_name and host is None:
        raise RequestRefused(
            "the names of instance and cluster are too long for a TLS server name, or contain two dashes in a row; "
            "leave out --by-name"
        )
    content = native_access.kubeconfig(
        way,
        server=current.server,
        ca=current.ca.encode() or None,
        user="me",
        credential=native_access.exec_credential(current.server),
        host=host,
    )
    return yaml.load(content, yaml.CSafeLoader)


def _renamed(document: Any, name: str) -> Any:
    """The document with all its entries called `name`, so that they do not collide with other entries."""
    [cluster], [user] = document["clusters"], document["users"]
    return {
        "clusters": [{"name": name, "cluster": cluster["cluster"]}],
        "users": [{"name": name, "user": user["user"]}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
