"""`kairship member`: adds, removes, stops and starts member clusters of the embedded plane."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated

import typer

from kairship.cli.completion import complete_member
from kairship.cli.output import DataDir, Format, Output, print_json, print_table, say
from kairship.cli.progress import LiveReporter
from kairship.embedded import EmbeddedPlane, Home, Member, MemberSpec, NodeGroup, Reporter, supervision
from kairship.engine import Engine

app = typer.Typer(help="Add, remove, stop and start member clusters.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="The name of the member.", autocompletion=complete_member)]
NewName = Annotated[str, typer.Argument(help="The name of the member: a-z, 0-9 and '-'.")]


@app.command()
def add(
    name: NewName,
    data_dir: DataDir,
    provider: Annotated[str, typer.Option(help="The provider that the cluster claims to have.")] = "kwok",
    region: Annotated[str, typer.Option(help="The region that the cluster claims to be in.")] = "local",
    zone: Annotated[str, typer.Option(help="The zone of the nodes; by default the region followed by '-a'.")] = "",
    nodes: Annotated[int, typer.Option(min=1, max=500, help="The number of nodes.")] = 3,
    cpu: Annotated[str, typer.Option(help="The CPUs of each node.")] = "8",
    memory: Annotated[str, typer.Option(help="The memory of each node.")] = "32Gi",
    output: Output = Format.TABLE,
) -> None:
    """Add a member cluster and join it to the demo instance."""
    group = NodeGroup(zone=zone or f"{region}-a", count=nodes, cpu=cpu, memory=memory)
    spec = MemberSpec(name=name, provider=provider, region=region, nodes=(group,))
    _change(Home(data_dir), lambda plane, reporter: plane.add_member(spec, reporter))
    _print_result(output, name, "added")


@app.command()
def remove(name: Name, data_dir: DataDir, output: Output = Format.TABLE) -> None:
    """Remove a member from the instance and delete its cluster. A member that does not run is removed by force."""
    _change(Home(data_dir), lambda plane, reporter: plane.remove_member(name, reporter))
    _print_result(output, name, "removed")


@app.command()
def stop(name: Name, data_dir: DataDir, output: Output = Format.TABLE) -> None:
    """Stop a member's processes, as if the cluster had failed. Karmada notices within a minute."""
    _change(Home(data_dir), lambda plane, reporter: plane.members.stop(name, reporter))
    _print_result(output, name, "stopped")


@app.command()
def start(name: Name, data_dir: DataDir, output: Output = Format.TABLE) -> None:
    """Start a stopped member again."""
    _change(Home(data_dir), lambda plane, reporter: plane.members.start(name, reporter))
    _print_result(output, name, "started")


@app.command(name="list")
def list_members(data_dir: DataDir, output: Output = Format.TABLE) -> None:
    """Show the members of the plane."""
    members = asyncio.run(_overview(Home(data_dir)))
    if output is Format.JSON:
        print_json(members)
        return
    print_table(
        ("MEMBER", "STATE", "PROVIDER", "REGION", "ZONES", "NODES"),
        [
            (
                member.spec.name,
                member.state.value,
                member.spec.provider,
                member.spec.region,
                ", ".join(member.spec.zones),
                str(sum(group.count for group in member.spec.nodes)),
            )
            for member in members
        ],
    )


async def _overview(home: Home) -> list[Member]:
    home.read()
    return await EmbeddedPlane(home, await Engine.find()).members.overview()


def _change(home: Home, act: Callable[[EmbeddedPlane, Reporter], Awaitable[None]]) -> None:
    """Change a running plane, holding its lock."""

    async def change() -> None:
        home.read()
        await supervision.require(home.root)
        plane = EmbeddedPlane(home, await Engine.find())
        with home.exclusive(), LiveReporter() as reporter:
            await act(plane, reporter)

    asyncio.run(change())


def _print_result(output: Format, name: str, state: str) -> None:
    if output is Format.JSON:
        print_json({"member": name, "state": state})
    else:
        say(f"Member {name} is {state}.")
