"""`kairship member`: clusters of the embedded plane that come, go, fail and return."""

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
    provider: Annotated[str, typer.Option(help="Whose cluster it plays.")] = "kwok",
    region: Annotated[str, typer.Option(help="Where it plays to be.")] = "local",
    zone: Annotated[str, typer.Option(help="The zone of its nodes; the region's name with '-a' by default.")] = "",
    nodes: Annotated[int, typer.Option(min=1, max=500, help="How many nodes.")] = 3,
    cpu: Annotated[str, typer.Option(help="CPUs of a node.")] = "8",
    memory: Annotated[str, typer.Option(help="Memory of a node.")] = "32Gi",
    output: Output = Format.TABLE,
) -> None:
    """Add a member cluster and join it to the demo instance."""
    group = NodeGroup(zone=zone or f"{region}-a", count=nodes, cpu=cpu, memory=memory)
    spec = MemberSpec(name=name, provider=provider, region=region, nodes=(group,))
    _change(Home(data_dir), lambda plane, reporter: plane.add_member(spec, reporter))
    _tell(output, name, "added")


@app.command()
def remove(name: Name, data_dir: DataDir, output: Output = Format.TABLE) -> None:
    """Take a member out of the instance and delete its cluster. One that does not run is removed by force."""
    _change(Home(data_dir), lambda plane, reporter: plane.remove_member(name, reporter))
    _tell(output, name, "removed")


@app.command()
def stop(name: Name, data_dir: DataDir, output: Output = Format.TABLE) -> None:
    """Stop a member's processes, as if the cluster had failed; Karmada notices within a minute."""
    _change(Home(data_dir), lambda plane, reporter: plane.members.stop(name, reporter))
    _tell(output, name, "stopped")


@app.command()
def start(name: Name, data_dir: DataDir, output: Output = Format.TABLE) -> None:
    """Start a stopped member again."""
    _change(Home(data_dir), lambda plane, reporter: plane.members.start(name, reporter))
    _tell(output, name, "started")


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
    """Change a running plane while nobody else does."""

    async def work() -> None:
        home.read()
        await supervision.require(home.root)
        plane = EmbeddedPlane(home, await Engine.find())
        with home.exclusive(), LiveReporter() as reporter:
            await act(plane, reporter)

    asyncio.run(work())


def _tell(output: Format, name: str, what: str) -> None:
    if output is Format.JSON:
        print_json({"member": name, "state": what})
    else:
        say(f"Member {name} is {what}.")
