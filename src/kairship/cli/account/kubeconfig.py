"""`kairship kubeconfig`: kubectl, helm and everything else of their kind on an instance."""

import asyncio
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer
import yaml

from kairship.cli.account import kubeconfig_file
from kairship.cli.account.rest import RequestRefused, current, rest
from kairship.cli.account.signed_in import SignedIn
from kairship.cli.output import Format, Output, print_json, say
from kairship.kube import native_access
from kairship.kube.native_access import Way

_MANAGEMENT = "/apis/kairship.io/v1alpha1"


def kubeconfig(
    instance: Annotated[str, typer.Argument(help="The instance to work with.")],
    cluster: Annotated[str | None, typer.Option(help="A member cluster of it, through the instance.")] = None,
    token: Annotated[
        bool,
        typer.Option(
            "--token", help="Put an access token into it, for programs, instead of asking `kairship token` each time."
        ),
    ] = False,
    valid: Annotated[
        int | None, typer.Option(min=1, help="With --token: for how many seconds; as long as allowed without it.")
    ] = None,
    by_name: Annotated[
        bool, typer.Option("--by-name", help="Lead there by a name in TLS, for clients that drop the path of a server.")
    ] = False,
    context: Annotated[str | None, typer.Option(help="How to call it; kairship-INSTANCE without it.")] = None,
    file: Annotated[
        Path | None,
        typer.Option("--kubeconfig", help="The file to write to; $KUBECONFIG or ~/.kube/config without it."),
    ] = None,
    switch: Annotated[bool, typer.Option(help="Make it the current context.")] = True,
    output: Output = Format.TABLE,
) -> None:
    """Add an instance to your kubeconfig. What others have put there stays."""
    if valid is not None and not token:
        raise typer.BadParameter("goes with --token: without one nothing ends", param_hint="--valid")
    way = Way(instance, cluster)
    name = context or f"kairship-{way.title}"
    document = asyncio.run(_document(way, token=token, valid=valid, by_name=by_name))
    path = kubeconfig_file.merge(_called(document, name), kubeconfig_file.files(file), switch=switch)
    if output is Format.JSON:
        print_json({"context": name, "kubeconfig": path})
    else:
        say(f"{name} is in {path}: kubectl --context {name} get deployments -A")


async def _document(way: Way, *, token: bool, valid: int | None, by_name: bool) -> Any:
    found = await current()
    async with rest(found.server, found.ca) as asking:
        if token:
            wish = {"cluster": way.cluster or "", "byName": by_name, **({"expirationSeconds": valid} if valid else {})}
            path = f"{_MANAGEMENT}/instances/{quote(way.instance, safe='')}/kubeconfig"
            issued = await asking.call("POST", path, wish, token=found.token, base="")
            return yaml.load(issued["kubeConfigString"], yaml.CSafeLoader)
        # Whether there is such an instance, for this person, is better said now than by kubectl.
        await asking.call("GET", f"{quote(way.path)}/version", token=found.token, base="")
    return _for_who_is_signed_in(way, found, by_name=by_name)


def _for_who_is_signed_in(way: Way, found: SignedIn, *, by_name: bool) -> Any:
    host = way.host if by_name else None
    if by_name and host is None:
        raise RequestRefused("the two names are too long for one of TLS, or have two dashes; leave out --by-name")
    content = native_access.kubeconfig(
        way,
        server=found.server,
        ca=found.ca.encode() or None,
        user="me",
        credential=native_access.signed_in(found.server),
        host=host,
    )
    return yaml.load(content, yaml.CSafeLoader)


def _called(document: Any, name: str) -> Any:
    """The same under a name of its own, so that nobody else's entry is taken for it."""
    [cluster], [user] = document["clusters"], document["users"]
    return {
        "clusters": [{"name": name, "cluster": cluster["cluster"]}],
        "users": [{"name": name, "user": user["user"]}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
