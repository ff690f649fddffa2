"""`kairship member`: clusters of the embedded plane that come, go, fail and return."""

import asyncio
from typing import Annotated

import typer

from kairship.cli.output import DataDir, Format, Output, console, print_json, print_table
from kairship.cli.progress import LiveReporter
from kairship.embedded import EmbeddedPlane, Home, MemberSpec, NodeGroup
from kairship.engine import Engine

app = typer.Typer(help="Add, remove, stop and start member clusters.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="The name of the member.")]


@app.command()
def add(
    name: Name,
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

    async def work() -> None:
        home = Home(data_dir)
        with home.exclusive(), LiveReporter() as reporter:
            await (await _plane(home)).add_member(spec, reporter)

    asyncio.run(work())
    _tell(output, name, "added")


@app.command()
def remove(name: Name, data_dir: DataDir, output: Output = Format.TABLE) -> None:
    """Take a member out of the instance and delete its cluster. A stopped one is removed by force."""

    async def work() -> None:
        home = Home(data_dir)
        with home.exclusive(), LiveReporter() as reporter:
            await (await _plane(home)).remove_member(name, reporter)

    asyncio.run(work())
    _tell(output, name, "removed")


@app.command()
def stop(name: Name, data_dir: DataDir, output: Output = Format.TABLE) -> None:
    """Stop a member's processes, as if the cluster had failed; Karmada notices within a minute."""

    async def work() -> None:
        await (await _plane(Home(data_dir))).members.stop(name)

    asyncio.run(work())
    _tell(output, name, "stopped")


@app.command()
def start(name: Name, data_dir: DataDir, output: Output = Format.TABLE) -> None:
    """Start a stopped member again."""

    async def work() -> None:
        await (await _plane(Home(data_dir))).members.start(name)

    asyncio.run(work())
    _tell(output, name, "started")


@app.command(name="list")
def list_members(data_dir: DataDir, output: Output = Format.TABLE) -> None:
    """Show the members of the plane."""

    async def work() -> list[MemberSpec]:
        return (await _plane(Home(data_dir))).members.specs()

    specs = asyncio.run(work())
    if output is Format.JSON:
        print_json(specs)
        return
    print_table(
        ("MEMBER", "PROVIDER", "REGION", "ZONES", "NODES"),
        [
            (
                spec.name,
                spec.provider,
                spec.region,
                ", ".join(spec.zones),
                str(sum(group.count for group in spec.nodes)),
            )
            for spec in specs
        ],
    )


async def _plane(home: Home) -> EmbeddedPlane:
    home.read()
    return EmbeddedPlane(home, await Engine.find())


def _tell(output: Format, name: str, what: str) -> None:
    if output is Format.JSON:
        print_json({"member": name, "state": what})
    else:
        console.print(f"Member {name} is {what}.")
