"""`kairship login`, `approve`, `logout` and `whoami`."""

import asyncio
import getpass
import socket
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from kairship.cli.account import signed_in
from kairship.cli.account.rest import (
    FAILED_PRECONDITION,
    RESOURCE_EXHAUSTED,
    RequestRefused,
    Rest,
    current,
    of_reply,
    rest,
)
from kairship.cli.output import DataDir, Format, Output, print_json, progress_console, say
from kairship.embedded import Home, roles, supervision
from kairship.supervisor import SupervisorClient

Server = Annotated[
    str | None, typer.Option(help="https://host:port of the plane; the one in --data-dir if it is not given.")
]
Ca = Annotated[
    Path | None,
    typer.Option(help="The authority of its certificate, in PEM.", exists=True, dir_okay=False),
]


def login(
    data_dir: DataDir,
    server: Server = None,
    ca: Ca = None,
    user: Annotated[
        str | None, typer.Option(help="Sign in with the password of this user, which is asked for.")
    ] = None,
    output: Output = Format.TABLE,
) -> None:
    """Sign in. It shows a code, which is approved where you are signed in: in the console, or by `kairship approve`."""
    found, who = asyncio.run(_login(data_dir, server, ca, user))
    _tell(found, who, output)


def approve(code: Annotated[str, typer.Argument(help="What the other device shows.")]) -> None:
    """Let another device act as you."""
    asyncio.run(_ask("POST", "/device-logins:approve", {"userCode": code, "approve": True}))
    progress_console.print("The other device is signed in as you within a few seconds.")


def logout() -> None:
    """End the session of this command line."""
    try:
        asyncio.run(_ask("POST", "/logout", {}))
    finally:
        signed_in.forget()


def whoami(output: Output = Format.TABLE) -> None:
    """Show who you are, and where."""
    found, who = asyncio.run(_whoami())
    _tell(found, who, output)


def _tell(found: signed_in.SignedIn, user: Any, output: Format) -> None:
    if output is Format.JSON:
        print_json({"server": found.server, "user": user})
    else:
        say(f"{user['name']} ({user['id']}) at {found.server}")


async def _login(
    data_dir: Path, server: str | None, ca: Path | None, user: str | None
) -> tuple[signed_in.SignedIn, Any]:
    if server is None:
        server, authority = await _plane_in(data_dir)
    else:
        authority = ca.read_text(encoding="ascii", errors="replace") if ca else ""
    if not server.startswith("https://"):
        raise typer.BadParameter("the server must begin with https://", param_hint="--server")
    server = server.rstrip("/")
    async with rest(server, authority) as asking:
        reply = await (_with_password(asking, user) if user else _with_device(asking, server))
    found = of_reply(server, authority, reply)
    with signed_in.held():
        signed_in.store(found)
    return found, reply["user"]


async def _plane_in(data_dir: Path) -> tuple[str, str]:
    home = Home(data_dir)
    await supervision.require(home.root)
    entrance = await roles.reach(SupervisorClient(home.root), home)
    return entrance.server, Path(entrance.ca).read_text(encoding="ascii")


async def _with_device(asking: Rest, server: str) -> Any:
    begun = await asking.call("POST", "/device-logins", {"device": f"kairship on {socket.gethostname()}"[:128]})
    progress_console.print(f"Approve the code {begun['userCode']} at {server}/device, or where you are signed in:")
    progress_console.print(f"    kairship approve {begun['userCode']}")
    deadline = time.monotonic() + begun["expiresIn"]
    while time.monotonic() < deadline:
        await asyncio.sleep(begun["interval"])
        try:
            return await asking.call("POST", "/device-logins:finish", {"deviceCode": begun["deviceCode"]})
        except RequestRefused as refused:
            if refused.code not in (FAILED_PRECONDITION, RESOURCE_EXHAUSTED):
                raise
    raise RequestRefused("nobody has approved the code in time; begin again")


async def _with_password(asking: Rest, user: str) -> Any:
    password = await asyncio.to_thread(_asked, f"Password of {user}: ")
    reply = await asking.call("POST", "/login", {"name": user, "password": password})
    if not reply["mustChangePassword"]:
        return reply
    progress_console.print("The password must be changed.")
    new = await asyncio.to_thread(_asked, "New password: ")
    if sys.stdin.isatty() and await asyncio.to_thread(_asked, "The same again: ") != new:
        raise RequestRefused("the two are not the same; nothing was changed")
    change = {"oldPassword": password, "newPassword": new}
    await asking.call("PUT", "/current-user/password", change, token=reply["token"])
    return await asking.call("POST", "/refresh-token", {"refreshToken": reply["refreshToken"]})


def _asked(prompt: str) -> str:
    """From the terminal, or a line of what is piped in; never an argument, which everybody can see."""
    return getpass.getpass(prompt) if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")


async def _ask(verb: str, path: str, body: Any = None) -> Any:
    found = await current()
    async with rest(found.server, found.ca) as asking:
        return await asking.call(verb, path, body, token=found.token)


async def _whoami() -> tuple[signed_in.SignedIn, Any]:
    return signed_in.load(), await _ask("GET", "/current-user")
