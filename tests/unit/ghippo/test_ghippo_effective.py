"""Effective bindings: folders and workspaces are resolved, sequences never decrease, and nothing is left over."""

import msgspec
import pytest
import sqlalchemy as sa
from support.reconcile import FakeClock

from kairship.access import Role
from kairship.ghippo.database import Database
from kairship.ghippo.database.schema import effective_bindings
from kairship.ghippo.errors import AlreadyExists, FailedPrecondition, InvalidArgument, NotFound
from kairship.ghippo.identity import groups, users
from kairship.ghippo.tenancy import (
    bindings,
    effective,
    folders,
    registered_clusters,
    registered_instances,
    roles,
    workspaces,
)
from kairship.ghippo.tenancy.bindings import Target
from kairship.ghippo.tenancy.built_in_roles import refresh_built_in_roles
from kairship.resources import AccessBindingSpec

from .conftest import Ask, Time


async def granted(ask: Ask) -> set[str]:
    """The subject, role and scope of every effective binding, as receivers get them."""
    rows = await ask.rows(sa.select(effective_bindings).where(effective_bindings.c.revoked.is_(False)))
    return {described(effective.spec_of(row)) for row in rows}


def described(spec: AccessBindingSpec) -> str:
    scope = spec.scope
    place = "/".join(filter(None, (scope.instance, scope.namespace))) or scope.cluster_uid or f"#{scope.workspace}"
    return f"{spec.role.id} on {'everything' if scope.level.value == 'Platform' else place}"


async def give(ask: Ask, subject: str, role: str, target: Target, kind: str = "User") -> str:
    return await ask.timed(bindings.create, subject_kind=kind, subject_id=subject, role=role, target=target)


def folder_target(identifier: int) -> Target:
    return Target(kind="Folder", id=str(identifier))


def workspace_target(identifier: int) -> Target:
    return Target(kind="Workspace", id=str(identifier))


@pytest.fixture
async def ann(ask: Ask) -> str:
    for name in ("east", "west"):
        await ask.timed(registered_instances.register, name=name, uid=f"uid-{name}")
    return await ask.timed(users.create, name="ann")


async def test_a_role_on_a_workspace_is_a_role_on_what_it_holds(ask: Ask, ann: str) -> None:
    shop = await ask.timed(workspaces.create, name="shop", alias="", folder=None)
    binding = await give(ask, ann, "editor", workspace_target(shop))
    assert await granted(ask) == {f"editor on #{shop}"}
    await ask.timed(workspaces.add, shop, instance="east", namespace="")
    held = await ask.timed(workspaces.add, shop, instance="west", namespace="web")
    assert await granted(ask) == {f"editor on #{shop}", "editor on east", "editor on west/web"}
    await ask.timed(workspaces.remove, shop, held)
    assert await granted(ask) == {f"editor on #{shop}", "editor on east"}
    await ask.timed(bindings.delete, binding)
    assert await granted(ask) == set()


async def test_a_workspace_holds_clusters(ask: Ask, ann: str) -> None:
    shop = await ask.timed(workspaces.create, name="shop", alias="", folder=None)
    bank = await ask.timed(workspaces.create, name="bank", alias="", folder=None)
    await give(ask, ann, "admin", workspace_target(shop))
    # A cluster may have the name of an instance.
    await ask.timed(registered_clusters.register, name="east", uid="cluster-1")
    held = await ask.timed(workspaces.add_cluster, shop, cluster="east")
    assert await granted(ask) == {f"admin on #{shop}", "admin on cluster-1"}
    with pytest.raises(AlreadyExists):
        await ask.timed(workspaces.add_cluster, bank, cluster="east")
    with pytest.raises(NotFound):
        await ask.timed(workspaces.add_cluster, bank, cluster="nowhere")
    with pytest.raises(FailedPrecondition):
        await ask.timed(workspaces.delete, shop)
    with pytest.raises(NotFound):
        await ask.timed(workspaces.remove, bank, held)
    await ask.timed(workspaces.remove, shop, held)
    assert await granted(ask) == {f"admin on #{shop}"}


async def test_a_cluster_that_is_made_anew_is_in_no_workspace(ask: Ask, ann: str) -> None:
    shop = await ask.timed(workspaces.create, name="shop", alias="", folder=None)
    await give(ask, ann, "admin", workspace_target(shop))
    await ask.timed(registered_clusters.register, name="berlin", uid="cluster-1")
    await ask.timed(workspaces.add_cluster, shop, cluster="berlin")
    await ask.timed(registered_clusters.register, name="berlin", uid="cluster-1")
    assert await granted(ask) == {f"admin on #{shop}", "admin on cluster-1"}
    await ask.timed(registered_clusters.register, name="berlin", uid="cluster-2")
    assert await granted(ask) == {f"admin on #{shop}"}
    await ask.timed(workspaces.add_cluster, shop, cluster="berlin")
    await ask.timed(registered_clusters.unregister, name="berlin")
    assert await granted(ask) == {f"admin on #{shop}"}
    assert await ask(registered_clusters.names) == []


async def test_folders_inherit_downward_and_lose_what_moves_away(ask: Ask, ann: str) -> None:
    top = await ask(folders.create, name="top", parent=None)
    below = await ask(folders.create, name="below", parent=top)
    aside = await ask(folders.create, name="aside", parent=None)
    shop = await ask.timed(workspaces.create, name="shop", alias="", folder=below)
    await ask.timed(workspaces.add, shop, instance="east", namespace="")
    await give(ask, ann, "viewer", folder_target(top))
    await give(ask, ann, "admin", folder_target(aside))
    assert await granted(ask) == {f"viewer on #{shop}", "viewer on east"}
    await ask.timed(workspaces.move, shop, folder=aside)
    assert await granted(ask) == {f"admin on #{shop}", "admin on east"}
    await ask.timed(folders.update, aside, name="aside", parent=below)
    assert await granted(ask) == {f"admin on #{shop}", "admin on east", f"viewer on #{shop}", "viewer on east"}
    await ask.timed(folders.update, aside, name="aside", parent=None)
    assert await granted(ask) == {f"admin on #{shop}", "admin on east"}


async def test_folders_make_no_circles_and_no_towers(ask: Ask, ann: str) -> None:
    top = await ask(folders.create, name="top", parent=None)
    below = await ask(folders.create, name="below", parent=top)
    for parent in (top, below):
        with pytest.raises(FailedPrecondition, match="into itself"):
            await ask.timed(folders.update, top, name="top", parent=parent)
    deepest = below
    for _ in range(folders.MAX_DEPTH - 2):
        deepest = await ask(folders.create, name="x", parent=deepest)
    with pytest.raises(FailedPrecondition, match="at most"):
        await ask(folders.create, name="x", parent=deepest)
    with pytest.raises(FailedPrecondition, match="something in the folder"):
        await ask.timed(folders.delete, top)
    with pytest.raises(NotFound):
        await ask(folders.create, name="x", parent=999)


async def test_a_change_of_a_role_is_a_change_for_everybody_who_has_it(ask: Ask, ann: str) -> None:
    await ask(roles.create, "deployer", display_name="", description="", granted=["kairship.deployments.get"])
    await give(ask, ann, "deployer", Target(kind="Resource", id="uid-east"))
    [before] = await ask.rows(sa.select(effective_bindings))
    await ask.timed(roles.update, "deployer", display_name="", description="", granted=["kairship.deployments.create"])
    [after] = await ask.rows(sa.select(effective_bindings))
    assert effective.spec_of(after).permissions == ("kairship.deployments.create",)
    assert after.sequence > before.sequence
    assert after.name == before.name


async def test_an_instance_made_anew_has_nobodys_rights(ask: Ask, ann: str) -> None:
    shop = await ask.timed(workspaces.create, name="shop", alias="", folder=None)
    await ask.timed(workspaces.add, shop, instance="east", namespace="")
    await give(ask, ann, "viewer", workspace_target(shop))
    await give(ask, ann, "admin", Target(kind="Resource", id="uid-east", namespace="web"))
    await ask.timed(registered_instances.register, name="east", uid="uid-east")  # the same again changes nothing
    assert await granted(ask) == {f"viewer on #{shop}", "viewer on east", "admin on east/web"}
    await ask.timed(registered_instances.register, name="east", uid="another")
    assert await granted(ask) == {f"viewer on #{shop}"}


async def test_what_is_taken_away_stays_as_a_gravestone_with_a_higher_sequence(ask: Ask, ann: str, time: Time) -> None:
    binding = await give(ask, ann, "viewer", Target(kind="Resource", id="uid-east"))
    [before] = await ask.rows(sa.select(effective_bindings))
    await ask.timed(bindings.delete, binding)
    [after] = await ask.rows(sa.select(effective_bindings))
    assert (after.name, after.revoked) == (before.name, True)
    assert after.sequence > before.sequence
    await ask(effective.delete_revoked, before=time())
    assert len(await ask.rows(sa.select(effective_bindings))) == 1
    await ask(effective.delete_revoked, before=time() + 60)
    assert await ask.rows(sa.select(effective_bindings)) == []


async def test_sequences_do_not_go_back_even_when_the_database_does(ask: Ask, ann: str, time: Time) -> None:
    """A restored backup resets the counter, but not the clock."""
    await give(ask, ann, "viewer", Target(kind="Resource", id="uid-east"))
    time.pass_(10)
    await give(ask, ann, "viewer", Target(kind="Resource", id="uid-west"))
    lost = max(row.sequence for row in await ask.rows(sa.select(effective_bindings)))
    await ask(lambda connection: connection.execute(sa.text("UPDATE counters SET value = 1")))
    await ask(lambda connection: connection.execute(sa.delete(effective_bindings)))
    time.pass_(10)
    await give(ask, ann, "editor", Target(kind="Resource", id="uid-west"))
    [row] = await ask.rows(sa.select(effective_bindings))
    assert row.sequence > lost


async def test_giving_twice_is_giving_once(ask: Ask, ann: str) -> None:
    target = Target(kind="Resource", id="uid-east")
    assert await give(ask, ann, "viewer", target) == await give(ask, ann, "viewer", target)
    assert len(await ask.rows(sa.select(effective_bindings))) == 1


async def test_a_group_stays_a_group_and_goes_with_its_rights(ask: Ask, ann: str) -> None:
    group = await ask.timed(groups.create, name="devs")
    await give(ask, group, "viewer", Target(kind="Resource", id="uid-east"), kind="Group")
    [row] = await ask.rows(sa.select(effective_bindings))
    assert effective.spec_of(row).subject.id == group
    await ask.timed(groups.delete, group)
    assert await granted(ask) == set()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"subject_id": "u-nobody"}, NotFound),
        ({"subject_kind": "Group"}, NotFound),
        ({"role": "no-such-role"}, NotFound),
        ({"role": Role.PLATFORM_ADMIN.id}, InvalidArgument),
        ({"target": Target(kind="Resource", id="nowhere")}, NotFound),
        ({"target": Target(kind="Workspace", id="7")}, NotFound),
        ({"target": Target(kind="Folder", id="1; DROP TABLE")}, InvalidArgument),
        ({"target": Target(kind="Workspace", id="٣")}, InvalidArgument),
        ({"target": Target(kind="Platform", id="x")}, InvalidArgument),
    ],
)
async def test_bindings_that_are_refused(ask: Ask, ann: str, change: dict[str, object], error: type[Exception]) -> None:
    whole = {
        "subject_kind": "User",
        "subject_id": ann,
        "role": "viewer",
        "target": Target(kind="Resource", id="uid-east"),
    }
    with pytest.raises(error):
        await ask.timed(bindings.create, **whole | change)
    assert await granted(ask) == set()


async def test_a_workspace_holds_a_thing_alone(ask: Ask, ann: str) -> None:
    shop = await ask.timed(workspaces.create, name="shop", alias="", folder=None)
    bank = await ask.timed(workspaces.create, name="bank", alias="", folder=None)
    held = await ask.timed(workspaces.add, shop, instance="east", namespace="")
    with pytest.raises(AlreadyExists, match="take it out"):
        await ask.timed(workspaces.add, bank, instance="east", namespace="")
    await ask.timed(workspaces.add, bank, instance="east", namespace="web")
    with pytest.raises(NotFound):
        await ask.timed(workspaces.remove, bank, held)
    with pytest.raises(FailedPrecondition, match="take them out"):
        await ask.timed(workspaces.delete, shop)
    with pytest.raises(AlreadyExists, match="choose another"):
        await ask.timed(workspaces.create, name="shop", alias="", folder=None)
    await ask.timed(workspaces.remove, shop, held)
    await give(ask, ann, "viewer", workspace_target(shop))
    await ask.timed(workspaces.delete, shop)
    assert await granted(ask) == set()


async def test_bindings_get_the_permissions_that_a_role_has_in_this_release(
    ask: Ask, ann: str, database: Database, time: Time
) -> None:
    await give(ask, ann, "admin", Target(kind="Platform"))

    async def stored() -> list[AccessBindingSpec]:
        return [effective.spec_of(row) for row in await ask.rows(sa.select(effective_bindings))]

    [current] = await stored()
    earlier = msgspec.structs.replace(current, permissions=current.permissions[1:])
    text = msgspec.json.encode(earlier).decode()
    await database.write(
        lambda connection: connection.execute(sa.update(effective_bindings).values(spec=text)) and None
    )
    await refresh_built_in_roles(database, clock=FakeClock(), wall=time)
    [refreshed] = await stored()
    assert refreshed.permissions == current.permissions
    assert refreshed.sequence > current.sequence
    await refresh_built_in_roles(database, clock=FakeClock(), wall=time)
    assert await stored() == [refreshed]
