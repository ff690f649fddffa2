"""`kairship login`, `approve`, `logout` and `whoami`."""

import asyncio
import getpass
import socket
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from kairship.cli.account import session
from kairship.cli.account.rest_client import (
    FAILED_PRECONDITION,
    RESOURCE_EXHAUSTED,
    RequestRefused,
    RestClient,
    current_session,
    rest,
    session_of_reply,
)
from kairship.cli.output import DataDir, Format, Output, print_json, progress_console, say
from kairship.embedded import Home, plane_processes, supervision
from kairship.supervisor import SupervisorClient

Server = Annotated[str | None, typer.Option(help="https://host:port of the plane; by default the plane in --data-dir.")]
Ca = Annotated[
    Path | None,
    typer.Option(help="The authority that issued the server's certificate, in PEM.", exists=True, dir_okay=False),
]


def login(
    data_dir: DataDir,
    server: Server = None,
    ca: Ca = None,
    user: Annotated[
        str | None, typer.Option(help="Sign in as this user with a password, for which you are prompted.")
    ] = None,
    output: Output = Format.TABLE,
) -> None:
    """Sign in with a code that you approve in the console or, where you are signed in, with `kairship approve`."""
    stored, signed_in_user = asyncio.run(_login(data_dir, server, ca, user))
    _print_user(stored, signed_in_user, output)


def approve(code: Annotated[str, typer.Argument(help="The code that the other device shows.")]) -> None:
    """Sign in another device as you."""
    asyncio.run(_call("POST", "/device-logins:approve", {"userCode": code, "approve": True}))
    progress_console.print("The other device will be signed in as you within a few seconds.")


def logout() -> None:
    """End the session of this command line."""
    try:
        asyncio.run(_call("POST", "/logout", {}))
    finally:
        session.delete()


def whoami(output: Output = Format.TABLE) -> None:
    """Show the user that you are signed in as, and the plane."""
    stored, user = asyncio.run(_whoami())
    _print_user(stored, user, output)


def _print_user(stored: session.StoredSession, user: Any, output: Format) -> None:
    if output is Format.JSON:
        print_json({"server": stored.server, "user": user})
    else:
        say(f"{user['name']} ({user['id']}) at {stored.server}")


async def _login(
    data_dir: Path, server: str | None, ca: Path | None, user: str | None
) -> tuple[session.StoredSession, Any]:
    if server is None:
        server, authority = await _plane_in(data_dir)
    else:
        authority = ca.read_text(encoding="ascii", errors="replace") if ca else ""
    if not server.startswith("https://"):
        raise typer.BadParameter("the server must begin with https://", param_hint="--server")
    server = server.rstrip("/")
    async with rest(server, authority) as client:
        reply = await (_with_password(client, user) if user else _with_device(client, server))
    stored = session_of_reply(server, authority, reply)
    with session.locked():
        session.store(stored)
    return stored, reply["user"]


async def _plane_in(data_dir: Path) -> tuple[str, str]:
    home = Home(data_dir)
    await supervision.require(home.root)
    entrance = await plane_processes.ensure_entrance(SupervisorClient(home.root), home)
    return entrance.server, Path(entrance.ca).read_text(encoding="ascii")


async def _with_device(client: RestClient, server: str) -> Any:
    begun = await client.call("POST", "/device-logins", {"device": f"kairship on {socket.gethostname()}"[:128]})
    progress_console.print(f"Approve the code {begun['userCode']} at {server}/device, or where you are signed in:")
    progress_console.print(f"    kairship approve {begun['userCode']}")
    deadline = time.monotonic() + begun["expiresIn"]
    while time.monotonic() < deadline:
        await asyncio.sleep(begun["interval"])
        try:
            return await client.call("POST", "/device-logins:finish", {"deviceCode": begun["deviceCode"]})
        except RequestRefused as refused:
            if refused.code not in (FAILED_PRECONDITION, RESOURCE_EXHAUSTED):
                raise
    raise RequestRefused("the code was not approved in time; run `kairship login` again")


async def _with_password(client: RestClient, user: str) -> Any:
    password = await asyncio.to_thread(_read_password, f"Password of {user}: ")
    reply = await client.call("POST", "/login", {"name": user, "password": password})
    if not reply["mustChangePassword"]:
        return reply
    progress_console.print("You must change your password.")
    new = await asyncio.to_thread(_read_password, "New password: ")
    if sys.stdin.isatty() and await asyncio.to_thread(_read_password, "Repeat the new password: ") != new:
        raise RequestRefused("the two passwords differ, so nothing was changed; run `kairship login` again")
    change = {"oldPassword": password, "newPassword": new}
    await client.call("PUT", "/current-user/password", change, token=reply["token"])
    return await client.call("POST", "/refresh-token", {"refreshToken": reply["refreshToken"]})


def _read_password(prompt: str) -> str:
    """Read from the terminal, or a line from a pipe. It is never an argument, which other users could see."""
    return getpass.getpass(prompt) if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")


async def _call(verb: str, path: str, body: Any = None) -> Any:
    current = await current_session()
    async with rest(current.server, current.ca) as client:
        return await client.call(verb, path, body, token=current.token)


async def _whoami() -> tuple[session.StoredSession, Any]:
    return session.load(), await _call("GET", "/current-user")
