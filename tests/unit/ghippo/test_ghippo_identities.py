"""Users, groups and roles: how they are created and changed, and what is refused."""

import pytest

from kairship.access import Role
from kairship.ghippo.errors import AlreadyExists, FailedPrecondition, InvalidArgument, NotFound
from kairship.ghippo.identifiers import hashed
from kairship.ghippo.identity import access_tokens, groups, sessions, users
from kairship.ghippo.listing import Page
from kairship.ghippo.tenancy import bindings, roles

from .conftest import Ask, Time


@pytest.mark.parametrize(
    "name", ["", "-ann", "Ann", "a b", "ann\n", "system:admin", "system-x", "kairship.io", "a" * 64, "ａｎｎ"]
)
def test_names_that_are_refused(name: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        users.check_name(name)
    assert caught.value.field == "name"


async def test_a_name_is_there_once(ask: Ask) -> None:
    await ask.timed(users.create, name="ann")
    with pytest.raises(AlreadyExists, match="choose another"):
        await ask.timed(users.create, name="ann")
    await ask.timed(users.create, name="bob")  # the failure has not broken the transaction


async def test_users_are_listed_by_page_and_found_by_what_they_are_called(ask: Ask) -> None:
    for name in ("ann", "bob", "carl", "100%", "under_score"):
        await ask.timed(users.create, name=name, display_name=f"{name.title()} X")
    rows, total = await ask(users.find, Page(number=2, size=2))
    assert ([row.name for row in rows], total) == (["bob", "carl"], 5)
    rows, total = await ask(users.find, Page(search="BOB"))
    assert ([row.name for row in rows], total) == (["bob"], 1)
    for wildcard in ("%", "_"):  # they are ordinary characters
        assert (await ask(users.find, Page(search=wildcard)))[1] == 1
    assert (await ask(users.find, Page(size=-1)))[1] == 5
    assert (await ask(users.find, Page(number=9, size=2)))[0] == []
    assert (await ask(users.find, Page(search="'; DROP TABLE users; --")))[1] == 0


async def test_disabling_ends_sessions_and_tokens(ask: Ask, time: Time) -> None:
    ann = await ask.timed(users.create, name="ann")
    await ask.timed(sessions.begin, ann, address="::1", agent="test")
    issued = await ask.timed(access_tokens.issue, ann, name="ci", granted=[], days=1)
    await ask.timed(users.update, ann, display_name="", email="", disabled=True)
    assert await ask.timed(sessions.of_user, ann) == []
    assert await ask.timed(access_tokens.find, hashed(issued.token)) is None


async def test_deleting_a_user_takes_everything_of_it(ask: Ask) -> None:
    ann = await ask.timed(users.create, name="ann")
    group = await ask.timed(groups.create, name="devs")
    await ask.timed(groups.add_member, group, ann)
    issued = await ask.timed(access_tokens.issue, ann, name="ci", granted=[], days=1)
    binding = await ask.timed(
        bindings.create, subject_kind="User", subject_id=ann, role="viewer", target=bindings.PLATFORM
    )
    await ask.timed(users.delete, ann)
    assert (await ask(groups.get, group)).size == 0
    assert await ask.timed(access_tokens.find, hashed(issued.token)) is None
    with pytest.raises(NotFound):
        await ask(bindings.get, binding)


async def make_admin(ask: Ask, subject: str, kind: str = "User") -> str:
    return await ask.timed(
        bindings.create,
        subject_kind=kind,
        subject_id=subject,
        role=Role.PLATFORM_ADMIN.id,
        target=bindings.PLATFORM,
    )


async def test_the_last_administrator_stays(ask: Ask) -> None:
    ann, bob = await ask.timed(users.create, name="ann"), await ask.timed(users.create, name="bob")
    binding = await make_admin(ask, ann)
    with pytest.raises(FailedPrecondition, match="last Platform Admin"):
        await ask.timed(users.delete, ann)
    with pytest.raises(FailedPrecondition, match="last Platform Admin"):
        await ask.timed(users.update, ann, display_name="", email="", disabled=True)
    with pytest.raises(FailedPrecondition, match="no administrator"):
        await ask.timed(bindings.delete, binding)
    group = await ask.timed(groups.create, name="ops")
    await make_admin(ask, group, "Group")
    with pytest.raises(FailedPrecondition):  # the group is empty
        await ask.timed(users.delete, ann)
    await ask.timed(groups.add_member, group, bob)
    await ask.timed(bindings.delete, binding)
    with pytest.raises(FailedPrecondition):
        await ask.timed(groups.remove_member, group, bob)
    with pytest.raises(FailedPrecondition):
        await ask.timed(groups.delete, group)
    with pytest.raises(FailedPrecondition):
        await ask.timed(users.delete, bob)


async def test_a_group_of_an_identity_provider_is_decided_there(ask: Ask) -> None:
    ann = await ask.timed(users.create, name="ann")
    await ask.timed(groups.sync_with_claims, ann, provider="corp", names=["devs", "ops"])
    await ask.timed(groups.create, name="devs")  # a local group of the same name is another group
    found, _ = await ask(groups.find, Page())
    assert [(row.name, row.provider, row.size) for row in sorted(found, key=lambda row: (row.name, row.provider))] == [
        ("devs", "", 0), ("devs", "corp", 1), ("ops", "corp", 1)
    ]  # fmt: skip
    [corp] = [row.id for row in found if row.provider and row.name == "devs"]
    with pytest.raises(FailedPrecondition, match="corp decides"):
        await ask.timed(groups.add_member, corp, ann)
    await ask.timed(groups.sync_with_claims, ann, provider="corp", names=["ops"])
    assert (await ask(groups.get, corp)).size == 0


async def test_roles_of_ones_own(ask: Ask) -> None:
    await ask(
        roles.create, "deployer", display_name="Deployer", description="", granted=["kairship.deployments.create"]
    )
    assert (await ask(roles.get, "deployer")).permissions == {"kairship.deployments.create"}
    assert [role.id for role in await ask(roles.find)] == ["platform-admin", "admin", "editor", "viewer", "deployer"]
    for refused in ("kairship.nothing.get", "ghippo.self.update", "*", ""):
        with pytest.raises(InvalidArgument, match="no permission"):
            await ask(roles.create, "other", display_name="", description="", granted=[refused])
    with pytest.raises(AlreadyExists):
        await ask(roles.create, "deployer", display_name="", description="", granted=[])
    with pytest.raises(AlreadyExists, match="built-in"):
        await ask(roles.create, "viewer", display_name="", description="", granted=[])
    with pytest.raises(FailedPrecondition, match="do not change"):
        await ask.timed(roles.update, "viewer", display_name="", description="", granted=[])
    ann = await ask.timed(users.create, name="ann")
    await ask.timed(bindings.create, subject_kind="User", subject_id=ann, role="deployer", target=bindings.PLATFORM)
    with pytest.raises(FailedPrecondition, match="delete them first"):
        await ask(roles.delete, "deployer")
