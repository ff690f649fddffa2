"""The services: every method of the protos, the contents of replies, escalation, and bad input."""

import inspect
from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec
import pytest
from protobuf import (
    DescFieldValueEnum,
    DescFieldValueList,
    DescFieldValueMessage,
    DescFieldValueScalar,
    DescMessage,
    ScalarType,
    message_from_json_value,
)

from kairship.access import Role
from kairship.gen.kairship.ghippo.v1alpha1.audit_pb import (
    AuditFilter,
    ExportAuditsRequest,
    ListAuditsRequest,
    VerifyAuditsRequest,
)
from kairship.gen.kairship.ghippo.v1alpha1.binding_pb import (
    CreateBindingRequest,
    DeleteBindingRequest,
    ListBindingsRequest,
    Subject,
    Target,
)
from kairship.gen.kairship.ghippo.v1alpha1.current_user_pb import (
    ChangePasswordRequest,
    CreateAccessTokenRequest,
    GetCurrentUserRequest,
    ListAccessTokensRequest,
    ListSessionsRequest,
)
from kairship.gen.kairship.ghippo.v1alpha1.folder_pb import (
    AddFolderMemberRequest,
    CreateFolderRequest,
    UpdateFolderRequest,
)
from kairship.gen.kairship.ghippo.v1alpha1.group_pb import AddGroupMemberRequest, CreateGroupRequest
from kairship.gen.kairship.ghippo.v1alpha1.identity_provider_pb import (
    CreateIdentityProviderRequest,
    GetIdentityProviderRequest,
    IdentityProvider,
)
from kairship.gen.kairship.ghippo.v1alpha1.role_pb import (
    CreateRoleRequest,
    GetRoleRequest,
    ListRolesRequest,
    UpdateRoleRequest,
)
from kairship.gen.kairship.ghippo.v1alpha1.session_pb import (
    ApproveDeviceLoginRequest,
    BeginDeviceLoginRequest,
    LoginRequest,
    LogoutRequest,
    RefreshTokenRequest,
)
from kairship.gen.kairship.ghippo.v1alpha1.user_pb import (
    CreateUserRequest,
    ListUsersRequest,
    ResetPasswordRequest,
    UpdateUserRequest,
)
from kairship.gen.kairship.ghippo.v1alpha1.webhook_pb import CreateWebhookRequest, ListWebhooksRequest
from kairship.gen.kairship.ghippo.v1alpha1.workspace_pb import (
    AddWorkspaceMemberRequest,
    AddWorkspaceResourceRequest,
    CreateWorkspaceRequest,
    ListWorkspaceMembersRequest,
    ListWorkspacesRequest,
    MoveWorkspaceRequest,
    RemoveWorkspaceMemberRequest,
)
from kairship.ghippo.audit import AuditLog
from kairship.ghippo.database import Database
from kairship.ghippo.errors import (
    FailedPrecondition,
    GhippoError,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    Unauthenticated,
)
from kairship.ghippo.identifiers import hashed
from kairship.ghippo.identity import access_tokens, lockout, users
from kairship.ghippo.identity.oidc import Issuers, ProviderLogin
from kairship.ghippo.identity.passwords import Passwords
from kairship.ghippo.identity.sign_in import SignIn
from kairship.ghippo.process import assemble_services
from kairship.ghippo.sealing import Sealer
from kairship.ghippo.services.directory import Directory
from kairship.ghippo.tenancy import bindings, registered_instances
from kairship.kube import AddressRule
from kairship.rpc.calls import Call, Caller
from kairship.wire import Method, methods, write

from .conftest import Ask, Time

PACKAGE = "kairship.ghippo.v1alpha1."
ELSEWHERE = {"Rights"}  # served by the entrance
GOOD = "correct horse battery staple"


def signed_in(user: str, session: str = "s-1") -> Caller:
    return Caller(id=user, name="", authenticated_by="session", session=session)


def call_of(request: Any, caller: Caller) -> Call:
    method = next(each for each in methods().values() if each.request is type(request))
    return Call(request_id="r-1", caller=caller, method=method, deadline=0.0, origin="192.0.2.1")


class Ghippo:
    def __init__(self, found: dict[str, object], ask: Ask, root: str) -> None:
        self._found = found
        self.ask = ask
        self.root = root

    def service(self, name: str) -> Any:
        return self._found[PACKAGE + name]

    async def __call__(self, method: str, request: Any, *, by: str | Caller | None = None) -> Any:
        service, _, name = method.partition(".")
        caller = by if isinstance(by, Caller) else signed_in(by or self.root)
        return await getattr(self.service(service), name)(request, call_of(request, caller))

    async def user(self, name: str) -> str:
        made = await self("Users.create_user", CreateUserRequest(name=name, password=GOOD))
        return str(made.id)


@pytest.fixture
async def ghippo(
    database: Database,
    passwords: Passwords,
    sealer: Sealer,
    audit: AuditLog,
    sign_in: SignIn,
    ask: Ask,
    time: Time,
) -> AsyncIterator[Ghippo]:
    issuers = Issuers(AddressRule.allowing(["127.0.0.0/8"]))
    found = assemble_services(
        database=database,
        passwords=passwords,
        sealer=sealer,
        audit=audit,
        sign_in=sign_in,
        providers=ProviderLogin(database, sealer, sign_in, issuers, clock=time),
        directory=Directory(database, sign_in, wall=time),
        clock=time,
    )
    root = await ask.timed(users.create, name="root")
    await ask.timed(
        bindings.create,
        subject_kind="User",
        subject_id=root,
        role=Role.PLATFORM_ADMIN.id,
        target=bindings.PLATFORM,
    )
    await ask.timed(registered_instances.register, name="east", uid="uid-east")
    yield Ghippo(found, ask, root)
    await issuers.close()


def user_subject(identifier: str) -> Subject:
    return Subject(kind=Subject.Kind.USER, id=identifier)


def ours() -> Iterator[Method]:
    for method in methods().values():
        if method.path.startswith(f"/{PACKAGE}") and method.service not in ELSEWHERE:
            yield method


def plain(name: str) -> str:
    return name.replace("_", "").lower()


def implementation(ghippo: Ghippo, method: Method) -> Any:
    [found] = [
        function
        for name, function in inspect.getmembers(ghippo.service(method.service), callable)
        if plain(name) == plain(method.name)
    ]
    return found


async def test_every_method_is_there_and_nothing_else(ghippo: Ghippo) -> None:
    for method in ours():
        assert inspect.isasyncgenfunction(implementation(ghippo, method)) == method.streams
    known = {(method.service, plain(method.name)) for method in ours()}
    for service in {method.service for method in ours()}:
        public = {plain(name) for name, _ in inspect.getmembers(ghippo.service(service), callable) if name[0] != "_"}
        assert {(service, name) for name in public} <= known


NASTY = ("", "0", "9999999999", "nul\0nul", "' OR 1=1 --", "a" * 5000, "💥\n\r%_٣")


def nasty(message: DescMessage, text: str, depth: int = 0) -> dict[str, Any]:
    """A request in which every string is `text`, and every number an extreme."""
    made: dict[str, Any] = {}
    for each in message.fields:
        match each.value:
            case DescFieldValueScalar(scalar=ScalarType.STRING):
                made[each.json_name] = text
            case DescFieldValueScalar(scalar=ScalarType.BOOL):
                made[each.json_name] = True
            case DescFieldValueScalar():
                made[each.json_name] = 2**31 - 1 if len(text) % 2 else -1
            case DescFieldValueEnum(enum=enum):
                made[each.json_name] = enum.values[len(text) % len(enum.values)].name
            case DescFieldValueMessage(message=inner) if depth < 3:
                made[each.json_name] = nasty(inner, text, depth + 1)
            case DescFieldValueList(element=ScalarType.STRING):
                made[each.json_name] = [text, text + "x"]
            case _:
                continue
    return made


async def outcome(ghippo: Ghippo, method: Method, request: Any) -> GhippoError | None:
    reply = implementation(ghippo, method)(request, call_of(request, signed_in(ghippo.root)))
    try:
        if method.streams:
            async for piece in reply:
                write(piece)
        else:
            write(await reply)
    except GhippoError as refusal:
        return refusal
    return None


@pytest.mark.parametrize("text", NASTY)
async def test_bad_input_is_refused_with_a_reason_and_breaks_nothing(
    ghippo: Ghippo, text: str, audit: AuditLog
) -> None:
    for method in ours():
        for body in (nasty(method.request.desc(), text), {}):
            refusal = await outcome(ghippo, method, message_from_json_value(method.request, body))
            assert refusal is None or 0 < len(refusal.message) < 600, method.path
    assert (await ghippo.ask(audit.verify)).broken_at is None
    [root] = (await ghippo("Users.list_users", ListUsersRequest(search="root", page=1))).items
    assert not root.disabled


async def test_sign_in_look_around_and_out(ghippo: Ghippo, sign_in: SignIn, time: Time) -> None:
    ann = await ghippo.user("ann")
    reply = await ghippo("Sessions.login", LoginRequest(name="ann", password=GOOD))
    assert (reply.user.id, reply.must_change_password, reply.expires_at) == (ann, True, time() + 300)
    [session] = (await ghippo("CurrentUser.list_sessions", ListSessionsRequest(), by=ann)).items
    me = signed_in(ann, session.id)
    change = ChangePasswordRequest(old_password=GOOD, new_password="another good password")
    await ghippo("CurrentUser.change_password", change, by=me)
    assert (await ghippo("CurrentUser.get_current_user", GetCurrentUserRequest(), by=me)).name == "ann"
    again = await ghippo("Sessions.refresh_token", RefreshTokenRequest(refresh_token=reply.refresh_token))
    assert not again.must_change_password
    await ghippo("Sessions.logout", LogoutRequest(), by=me)
    with pytest.raises(Unauthenticated):
        await ghippo("Sessions.refresh_token", RefreshTokenRequest(refresh_token=again.refresh_token))


async def test_a_token_cannot_make_another_or_change_the_password(ghippo: Ghippo) -> None:
    ann = await ghippo.user("ann")
    made = await ghippo("CurrentUser.create_access_token", CreateAccessTokenRequest(name="ci", days=7), by=ann)
    assert made.token.startswith("kst_")
    listed = await ghippo("CurrentUser.list_access_tokens", ListAccessTokensRequest(), by=ann)
    assert made.token not in write(listed).decode()
    with_token = Caller(id=ann, name="", authenticated_by="token")
    for method, request in (
        ("CurrentUser.create_access_token", CreateAccessTokenRequest(name="more", days=7)),
        ("CurrentUser.change_password", ChangePasswordRequest(old_password=GOOD, new_password="another password")),
    ):
        with pytest.raises(FailedPrecondition, match="session"):
            await ghippo(method, request, by=with_token)


async def test_secrets_are_in_one_reply_and_no_other(ghippo: Ghippo) -> None:
    made = await ghippo("Webhooks.create_webhook", CreateWebhookRequest(name="hook", url="https://example.com/"))
    assert made.secret
    assert made.secret not in write(await ghippo("Webhooks.list_webhooks", ListWebhooksRequest())).decode()
    provider = IdentityProvider(
        name="corp", issuer="https://login.example.com", client_id="k", redirect_uris=["https://example.com/back"]
    )
    request = CreateIdentityProviderRequest(provider=provider, client_secret="hunter2")
    assert "hunter2" not in write(await ghippo("IdentityProviders.create_identity_provider", request)).decode()
    found = await ghippo("IdentityProviders.get_identity_provider", GetIdentityProviderRequest(name="corp"))
    assert "hunter2" not in write(found).decode()


async def custom(ghippo: Ghippo, user: str, *granted: str) -> None:
    """Binds a custom role to a user on the platform."""
    role = f"role-of-{user}"
    await ghippo("Roles.create_role", CreateRoleRequest(id=role, permissions=list(granted)))
    target = Target(kind=Target.Kind.PLATFORM)
    await ghippo("Bindings.create_binding", CreateBindingRequest(subject=user_subject(user), role=role, target=target))


async def test_nobody_gives_away_more_than_they_have(ghippo: Ghippo) -> None:
    """A user who may manage users, groups, roles and bindings cannot become an administrator by any of them."""
    helper = await ghippo.user("helper")
    managing = ("users", "groups", "roles", "bindings")
    await custom(ghippo, helper, *(f"ghippo.{kind}.create" for kind in managing), "kairship.pods.get")
    platform = Target(kind=Target.Kind.PLATFORM)
    admins = await ghippo("Groups.create_group", CreateGroupRequest(name="admins"))
    subject = Subject(kind=Subject.Kind.GROUP, id=admins.id)
    admin = Role.PLATFORM_ADMIN.id
    await ghippo("Bindings.create_binding", CreateBindingRequest(subject=subject, role=admin, target=platform))
    attempts = (
        ("Bindings.create_binding", CreateBindingRequest(subject=user_subject(helper), role=admin, target=platform)),
        ("Bindings.create_binding", CreateBindingRequest(subject=user_subject(helper), role="editor", target=platform)),
        ("Groups.add_group_member", AddGroupMemberRequest(id=admins.id, user=helper)),
        ("Roles.update_role", UpdateRoleRequest(id=f"role-of-{helper}", permissions=["kairship.instances.delete"])),
        ("Users.reset_password", ResetPasswordRequest(id=ghippo.root, password=GOOD)),
        ("Users.update_user", UpdateUserRequest(id=ghippo.root, disabled=True)),
    )
    for method, request in attempts:
        with pytest.raises(PermissionDenied, match="do not have"):
            await ghippo(method, request, by=helper)
    await ghippo("Groups.add_group_member", AddGroupMemberRequest(id=admins.id, user=helper))  # an administrator may


async def test_nobody_gives_by_workspaces_and_folders_what_they_do_not_have(ghippo: Ghippo) -> None:
    """Ann manages workspaces and folders, and is Admin of a workspace and a folder of her own."""
    ann, bob = await ghippo.user("ann"), await ghippo.user("bob")
    await custom(ghippo, ann, "kairship.workspaces.bind", "ghippo.workspaces.bind", "ghippo.folders.update")

    async def made(service: str, request: Any) -> str:
        return str((await ghippo(f"{service}s.create_{service.lower()}", request)).id)

    folders = {name: await made("Folder", CreateFolderRequest(name=name)) for name in ("of-ann", "of-others")}
    spaces = {
        "of-ann": await made("Workspace", CreateWorkspaceRequest(name="of-ann")),
        "of-others": await made("Workspace", CreateWorkspaceRequest(name="of-others", folder=folders["of-others"])),
    }
    await ghippo(
        "Workspaces.add_workspace_resource",
        AddWorkspaceResourceRequest(workspace=spaces["of-others"], instance="east"),
    )
    own_space = AddWorkspaceMemberRequest(workspace=spaces["of-ann"], subject=user_subject(ann), role="admin")
    await ghippo("Workspaces.add_workspace_member", own_space)
    own_folder = AddFolderMemberRequest(id=folders["of-ann"], subject=user_subject(ann), role="admin")
    await ghippo("Folders.add_folder_member", own_folder)
    attempts = (
        (
            "Workspaces.add_workspace_resource",
            AddWorkspaceResourceRequest(workspace=spaces["of-ann"], instance="east", namespace="web"),
        ),
        ("Workspaces.move_workspace", MoveWorkspaceRequest(workspace=spaces["of-others"], folder=folders["of-ann"])),
        (
            "Folders.update_folder",
            UpdateFolderRequest(id=folders["of-others"], name="of-others", parent=folders["of-ann"]),
        ),
    )
    for method, request in attempts:
        with pytest.raises(PermissionDenied, match=f"would give user {ann} .* on (web|east|workspace)"):
            await ghippo(method, request, by=ann)
    # What gives nobody anything is done: another name, another place for what is hers.
    rename = UpdateFolderRequest(id=folders["of-ann"], name="renamed")
    assert (await ghippo("Folders.update_folder", rename, by=ann)).name == "renamed"
    out = MoveWorkspaceRequest(workspace=spaces["of-ann"], folder=folders["of-ann"])
    await ghippo("Workspaces.move_workspace", out, by=ann)
    # Bob gains what Ann has herself, by an instance that is hers, and nothing of an instance that is not.
    target = Target(kind=Target.Kind.RESOURCE, instance="east")
    await ghippo(
        "Bindings.create_binding", CreateBindingRequest(subject=user_subject(ann), role="editor", target=target)
    )
    member = AddWorkspaceMemberRequest(workspace=spaces["of-ann"], subject=user_subject(bob), role="viewer")
    await ghippo("Workspaces.add_workspace_member", member, by=ann)
    [(method, request), *_] = attempts
    with pytest.raises(PermissionDenied, match=f"would give user {ann}"):  # Admin is more than Editor
        await ghippo(method, request, by=ann)
    await ghippo(
        "Bindings.create_binding", CreateBindingRequest(subject=user_subject(ann), role="admin", target=target)
    )
    limited = msgspec.structs.replace(signed_in(ann), limited_to=frozenset({"ghippo.workspaces.bind"}))
    with pytest.raises(PermissionDenied, match="would give"):
        await ghippo(method, request, by=limited)
    await ghippo(method, request, by=ann)


async def test_wrong_codes_of_devices_are_few(ghippo: Ghippo) -> None:
    ann = await ghippo.user("ann")
    begun = await ghippo("Sessions.begin_device_login", BeginDeviceLoginRequest(device="laptop"))
    wrong = ApproveDeviceLoginRequest(user_code="BBBB-BBBB", approve=True)
    for _ in range(lockout.CODES.free_failures):
        with pytest.raises(NotFound):
            await ghippo("Sessions.approve_device_login", wrong, by=ann)
    right = ApproveDeviceLoginRequest(user_code=begun.user_code, approve=True)
    with pytest.raises(ResourceExhausted, match="too many failed attempts"):
        await ghippo("Sessions.approve_device_login", right, by=ann)
    await ghippo("Sessions.approve_device_login", right)  # somebody else is not concerned


async def test_a_new_password_ends_access_tokens_unless_they_are_kept(ghippo: Ghippo) -> None:
    ann = await ghippo.user("ann")
    token = await ghippo.ask.timed(access_tokens.issue, ann, name="ci", granted=[], days=1)

    async def is_valid() -> bool:
        return await ghippo.ask.timed(access_tokens.find, hashed(token.token)) is not None

    await ghippo("Users.reset_password", ResetPasswordRequest(id=ann, password=GOOD, keep_access_tokens=True))
    assert await is_valid()
    await ghippo("Users.reset_password", ResetPasswordRequest(id=ann, password=GOOD))
    assert not await is_valid()


async def test_a_token_that_is_for_less_gives_no_more_than_it_is_for(ghippo: Ghippo) -> None:
    ann = await ghippo.user("ann")
    for_less = Caller(id=ghippo.root, name="", limited_to=frozenset({"ghippo.bindings.create", "kairship.pods.get"}))
    await ghippo("Roles.create_role", CreateRoleRequest(id="looker", permissions=["kairship.pods.get"]))
    platform = Target(kind=Target.Kind.PLATFORM)
    more = CreateBindingRequest(subject=user_subject(ann), role="viewer", target=platform)
    with pytest.raises(PermissionDenied, match="do not have"):
        await ghippo("Bindings.create_binding", more, by=for_less)
    within = CreateBindingRequest(subject=user_subject(ann), role="looker", target=platform)
    await ghippo("Bindings.create_binding", within, by=for_less)


async def test_an_admin_of_a_workspace_gives_roles_there_and_nowhere_else(ghippo: Ghippo) -> None:
    ann, bob = await ghippo.user("ann"), await ghippo.user("bob")
    shop = await ghippo("Workspaces.create_workspace", CreateWorkspaceRequest(name="shop"))
    bank = await ghippo("Workspaces.create_workspace", CreateWorkspaceRequest(name="bank"))
    await ghippo("Workspaces.add_workspace_resource", AddWorkspaceResourceRequest(workspace=shop.id, instance="east"))

    for wrong in ({}, {"instance": "east", "cluster": "berlin"}, {"cluster": "berlin", "namespace": "default"}):
        with pytest.raises(InvalidArgument):
            await ghippo("Workspaces.add_workspace_resource", AddWorkspaceResourceRequest(workspace=shop.id, **wrong))

    def member(workspace: str, user: str, role: str) -> AddWorkspaceMemberRequest:
        return AddWorkspaceMemberRequest(workspace=workspace, subject=user_subject(user), role=role)

    await ghippo("Workspaces.add_workspace_member", member(shop.id, ann, "admin"))
    await ghippo("Workspaces.add_workspace_member", member(shop.id, bob, "editor"), by=ann)
    await ghippo("Roles.create_role", CreateRoleRequest(id="destroyer", permissions=["kairship.instances.delete"]))
    for request in (member(shop.id, bob, "destroyer"), member(bank.id, bob, "viewer")):
        with pytest.raises(PermissionDenied):
            await ghippo("Workspaces.add_workspace_member", request, by=ann)
    elsewhere = await ghippo("Workspaces.add_workspace_member", member(bank.id, ann, "viewer"))
    with pytest.raises(NotFound):  # the identifier of a member of another workspace
        await ghippo(
            "Workspaces.remove_workspace_member",
            RemoveWorkspaceMemberRequest(workspace=shop.id, id=elsewhere.id),
            by=ann,
        )
    found = await ghippo("Workspaces.list_workspace_members", ListWorkspaceMembersRequest(workspace=shop.id))
    assert {(each.subject.name, each.role) for each in found.items} == {("ann", "admin"), ("bob", "editor")}


async def test_workspaces_are_listed_to_those_who_may_see_them(ghippo: Ghippo) -> None:
    ann = await ghippo.user("ann")
    shop = await ghippo("Workspaces.create_workspace", CreateWorkspaceRequest(name="shop"))
    await ghippo("Workspaces.create_workspace", CreateWorkspaceRequest(name="bank"))

    async def seen(by: str) -> list[str]:
        reply = await ghippo("Workspaces.list_workspaces", ListWorkspacesRequest(page_size=-1), by=by)
        assert reply.pagination.total == len(reply.items)
        return [each.name for each in reply.items]

    assert await seen(ann) == []
    member = AddWorkspaceMemberRequest(workspace=shop.id, subject=user_subject(ann), role="viewer")
    await ghippo("Workspaces.add_workspace_member", member)
    assert await seen(ann) == ["shop"]
    assert await seen(ghippo.root) == ["bank", "shop"]


async def test_bindings_are_listed_as_they_were_given(ghippo: Ghippo) -> None:
    ann = await ghippo.user("ann")
    target = Target(kind=Target.Kind.RESOURCE, instance="east", namespace="web")
    made = await ghippo(
        "Bindings.create_binding", CreateBindingRequest(subject=user_subject(ann), role="viewer", target=target)
    )
    [found] = (await ghippo("Bindings.list_bindings", ListBindingsRequest(subject=ann))).items
    assert found == made
    assert (found.subject.name, found.target.instance, found.target.namespace) == ("ann", "east", "web")
    await ghippo("Bindings.delete_binding", DeleteBindingRequest(id=made.id))
    assert (await ghippo("Bindings.list_bindings", ListBindingsRequest(subject=ann))).items == []
    for wrong in (Target(), Target(kind=Target.Kind.RESOURCE), Target(kind=Target.Kind.PLATFORM, instance="east")):
        request = CreateBindingRequest(subject=user_subject(ann), role="viewer", target=wrong)
        with pytest.raises(InvalidArgument):
            await ghippo("Bindings.create_binding", request)


async def test_roles_are_paged_and_searched(ghippo: Ghippo) -> None:
    reply = await ghippo("Roles.list_roles", ListRolesRequest(page=2, page_size=3))
    assert ([role.id for role in reply.items], reply.pagination.total, reply.pagination.pages) == (["viewer"], 4, 2)
    reply = await ghippo("Roles.list_roles", ListRolesRequest(search="Platform"))
    assert [role.id for role in reply.items] == ["platform-admin"]


async def test_custom_roles_are_for_users_who_have_a_role(ghippo: Ghippo) -> None:
    ann = await ghippo.user("ann")
    await ghippo("Roles.create_role", CreateRoleRequest(id="secret-plan", permissions=["kairship.pods.get"]))

    async def seen() -> set[str]:
        return {role.id for role in (await ghippo("Roles.list_roles", ListRolesRequest(), by=ann)).items}

    assert await seen() == {"platform-admin", "admin", "editor", "viewer"}
    with pytest.raises(NotFound) as hidden:
        await ghippo("Roles.get_role", GetRoleRequest(id="secret-plan"), by=ann)
    with pytest.raises(NotFound) as missing:
        await ghippo("Roles.get_role", GetRoleRequest(id="nobodys"), by=ann)
    assert str(hidden.value).replace("secret-plan", "nobodys") == str(missing.value)
    target = Target(kind=Target.Kind.PLATFORM)
    await ghippo(
        "Bindings.create_binding", CreateBindingRequest(subject=user_subject(ann), role="viewer", target=target)
    )
    assert "secret-plan" in await seen()
    assert (await ghippo("Roles.get_role", GetRoleRequest(id="secret-plan"), by=ann)).id == "secret-plan"
    limited = msgspec.structs.replace(signed_in(ann), limited_to=frozenset({"kairship.pods.get"}))
    with pytest.raises(NotFound):
        await ghippo("Roles.get_role", GetRoleRequest(id="secret-plan"), by=limited)


async def test_the_audit_is_read_exported_and_verified(ghippo: Ghippo) -> None:
    await ghippo.user("ann")
    for _ in range(3):
        await ghippo("Sessions.login", LoginRequest(name="ann", password=GOOD))
    with pytest.raises(Unauthenticated):
        await ghippo("Sessions.login", LoginRequest(name="ann", password="wrong wrong wrong"))
    reply = await ghippo("Audits.list_audits", ListAuditsRequest(limit=2))
    assert ([entry.outcome for entry in reply.items], reply.next) == ([16, 0], reply.items[-1].sequence)
    failed = await ghippo("Audits.list_audits", ListAuditsRequest(filter=AuditFilter(failed=True)))
    assert len(failed.items) == 1
    request = ExportAuditsRequest()
    pieces = [
        piece.csv
        async for piece in ghippo.service("Audits").export_audits(request, call_of(request, signed_in(ghippo.root)))
    ]
    assert len("".join(pieces).splitlines()) == 5
    found = await ghippo("Audits.verify_audits", VerifyAuditsRequest())
    assert (found.intact, found.entries) == (True, 4)
