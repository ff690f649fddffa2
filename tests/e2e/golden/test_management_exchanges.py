"""Every operation of global management: signing in, users, groups, roles, bindings, folders, workspaces, audit.

Operations that need a session are called by a user who is signed in, and all others by the administrator.
"""

import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from support import entrance, identity_provider
from support.golden import exchanges
from support.our_kinds import SERVED
from support.waiting import eventually

from kairship.embedded import demo
from kairship.kube import Client

FIRST, SECOND, GOOD = "a first password", "a second password", "correct horse battery staple"
STATE = frozenset({"state"})
BACK = "https://kairship.example.com/back"


@pytest.fixture
async def registered(world: Client) -> str:
    """An instance that global management has registered, so that roles can be bound to it."""

    async def is_registered() -> bool:
        found = await world.get(SERVED["Registration"], f"kairship.instance.{demo.INSTANCE}")
        conditions = found.get("status", {}).get("conditions", ())
        return any(each["type"] == "Registered" and each["status"] == "True" for each in conditions)

    await eventually(is_registered, "the registration")
    return demo.INSTANCE


async def test_people_and_groups(client: entrance.Client, own: str) -> None:
    async with exchanges(client, "Users", "Groups", variables={}, names={"own": own}) as exchange:

        def mine(each: Any) -> bool:
            return own in each["name"]

        body = {"name": f"ann-{own}", "displayName": "Ann", "email": "ann@example.com", "password": FIRST}
        user = (await exchange("Users.CreateUser", body=body))["id"]
        await exchange("Users.GetUser", id=user)
        change = {"displayName": "Ann B.", "email": "ann@example.com", "disabled": False}
        await exchange("Users.UpdateUser", id=user, body=change)
        await exchange("Users.ResetPassword", id=user, body={"password": SECOND})
        await exchange("Users.ListUsers", query={"search": own}, only=mine)
        group = (await exchange("Groups.CreateGroup", body={"name": f"devs-{own}", "description": "Developers"}))["id"]
        await exchange("Groups.GetGroup", id=group)
        await exchange("Groups.UpdateGroup", id=group, body={"description": "Those who develop"})
        await exchange("Groups.ListGroups", query={"search": own}, only=mine)
        await exchange("Groups.AddGroupMember", id=group, body={"user": user})
        await exchange("Groups.ListGroupMembers", id=group)
        await exchange("Groups.RemoveGroupMember", id=group, user=user)
        await exchange("Groups.DeleteGroup", id=group)
        await exchange("Users.DeleteUser", id=user)


async def test_roles_and_bindings(client: entrance.Client, own: str) -> None:
    made = await client.request("POST", "/apis/ghippo.io/v1alpha1/users", {"name": f"bob-{own}", "password": GOOD})
    user, role = made.json["id"], f"looker-{own}"
    async with exchanges(client, "Roles", "Bindings", variables={}, names={"own": own}) as exchange:

        def mine(each: Any) -> bool:
            return own in each["id"]

        body = {"id": role, "displayName": "Looker", "description": "Looks", "permissions": ["kairship.pods.get"]}
        await exchange("Roles.CreateRole", body=body)
        await exchange("Roles.GetRole", id=role)
        wider = {"displayName": "Looker", "description": "", "permissions": ["kairship.pods.get", "kairship.pods.logs"]}
        await exchange("Roles.UpdateRole", id=role, body=wider)
        await exchange("Roles.ListRoles", query={"search": own}, only=mine)
        await exchange("Roles.ListPermissions", query={"product": "ghippo"})
        given = {"subject": {"kind": "USER", "id": user}, "role": role, "target": {"kind": "PLATFORM"}}
        binding = (await exchange("Bindings.CreateBinding", body=given))["id"]
        query = {"subject": user}
        await exchange("Bindings.ListBindings", query=query)
        await exchange("Bindings.DeleteBinding", id=binding)
        await exchange("Roles.DeleteRole", id=role)
    await client.request("DELETE", f"/apis/ghippo.io/v1alpha1/users/{user}")


async def test_folders_and_workspaces(client: entrance.Client, own: str, registered: str) -> None:
    made = await client.request("POST", "/apis/ghippo.io/v1alpha1/users", {"name": f"eve-{own}", "password": GOOD})
    user = made.json["id"]
    names = {"own": own}
    subject = {"subject": {"kind": "USER", "id": user}, "role": "viewer"}
    numbers = frozenset({"id", "folder", "parent", "path"})
    async with exchanges(client, "Folders", "Workspaces", variables={}, names=names) as exchange:

        def mine(each: Any) -> bool:
            return own in each["name"]

        folder = (await exchange("Folders.CreateFolder", body={"name": f"all-{own}"}, varying=numbers))["id"]
        await exchange("Folders.GetFolder", id=folder, varying=numbers)
        await exchange("Folders.UpdateFolder", id=folder, body={"name": f"every-{own}"}, varying=numbers)
        await exchange("Folders.ListFolders", query={"search": own}, only=mine, varying=numbers)
        member = (await exchange("Folders.AddFolderMember", id=folder, body=subject))["id"]
        await exchange("Folders.ListFolderMembers", id=folder)
        await exchange("Folders.RemoveFolderMember", id=folder, member=member)

        body = {"name": f"shop-{own}", "alias": "Shop", "folder": folder}
        workspace = (
            await exchange("Workspaces.CreateWorkspace", body=body, varying=numbers, given=frozenset({"folder"}))
        )["id"]
        await exchange("Workspaces.GetWorkspace", workspace=workspace, varying=numbers)
        await exchange("Workspaces.UpdateWorkspace", workspace=workspace, body={"alias": "The shop"}, varying=numbers)
        await exchange("Workspaces.MoveWorkspace", workspace=workspace, body={"folder": ""}, varying=numbers)
        await exchange("Workspaces.ListWorkspaces", query={"search": own}, only=mine, varying=numbers)
        member = (await exchange("Workspaces.AddWorkspaceMember", workspace=workspace, body=subject))["id"]
        await exchange("Workspaces.ListWorkspaceMembers", workspace=workspace)
        await exchange("Workspaces.RemoveWorkspaceMember", workspace=workspace, id=member)
        place = {"instance": registered, "namespace": f"shop-{own}"}
        held = await exchange("Workspaces.AddWorkspaceResource", workspace=workspace, body=place)
        await exchange("Workspaces.ListWorkspaceResources", workspace=workspace)
        await exchange("Workspaces.RemoveWorkspaceResource", workspace=workspace, id=held["id"])
        await exchange("Workspaces.DeleteWorkspace", workspace=workspace)
        await exchange("Folders.DeleteFolder", id=folder)
    await client.request("DELETE", f"/apis/ghippo.io/v1alpha1/users/{user}")


async def test_sessions_and_what_is_ones_own(client: entrance.Client, own: str) -> None:
    name, anybody = f"kim-{own}", client.named("")
    made = await client.request("POST", "/apis/ghippo.io/v1alpha1/users", {"name": name, "password": FIRST})
    names, provider = {"own": own}, f"corp-{own}"
    services = ("Sessions", "CurrentUser", "IdentityProviders")
    async with (
        identity_provider.serving() as corp,
        exchanges(client, *services, variables={}, names=names) as exchange,
    ):
        signed = await exchange("Sessions.Login", by=anybody, body={"name": name, "password": FIRST})
        change = {"oldPassword": FIRST, "newPassword": GOOD}
        kim = client.named(signed["token"])
        await exchange("CurrentUser.ChangePassword", by=kim, body=change)
        refresh = {"refreshToken": signed["refreshToken"]}
        kim = client.named((await exchange("Sessions.RefreshToken", by=anybody, body=refresh))["token"])
        await exchange("CurrentUser.GetCurrentUser", by=kim)
        wanted = {"name": "ci", "permissions": ["kairship.pods.get"], "days": 30}
        token = (await exchange("CurrentUser.CreateAccessToken", by=kim, body=wanted))["accessToken"]["id"]
        await exchange("CurrentUser.ListAccessTokens", by=kim)
        await exchange("CurrentUser.DeleteAccessToken", by=kim, id=token)

        begun = await exchange("Sessions.BeginDeviceLogin", by=anybody, body={"device": "kairship on laptop-7"})
        await exchange("Sessions.ApproveDeviceLogin", by=kim, body={"userCode": begun["userCode"], "approve": True})
        device = await exchange("Sessions.FinishDeviceLogin", by=anybody, body={"deviceCode": begun["deviceCode"]})
        listed = await exchange(
            "CurrentUser.ListSessions", by=client.named(device["token"]), varying=frozenset({"current"})
        )
        [other] = [each["id"] for each in listed["items"] if not each["current"]]
        await exchange("CurrentUser.DeleteSession", by=client.named(device["token"]), id=other)
        await exchange("Sessions.Logout", by=client.named(device["token"]), body={})

        settings = {
            "name": provider,
            "displayName": "Corp",
            "issuer": corp.url,
            "clientId": "kairship",
            "groupsClaim": "groups",
            "redirectUris": [BACK],
        }
        body = {"provider": settings, "clientSecret": "the secret of corp"}
        await exchange("IdentityProviders.CreateIdentityProvider", body=body)
        await exchange("IdentityProviders.GetIdentityProvider", name=provider)
        await exchange("IdentityProviders.UpdateIdentityProvider", name=provider, body={"provider": settings})
        await exchange("IdentityProviders.ListIdentityProviders", only=lambda each: own in each["name"])
        await exchange("Sessions.GetLoginOptions", by=anybody, only=lambda each: own in each["name"])
        there = {"redirectUri": BACK}
        away = await exchange("Sessions.BeginProviderLogin", by=anybody, provider=provider, body=there, varying=STATE)
        at = int(time.time())
        corp.claims = {
            "iss": corp.url,
            "aud": "kairship",
            "sub": own,
            "iat": at,
            "exp": at + 60,
            "nonce": parse_qs(urlsplit(away["authorizationUrl"]).query)["nonce"][0],
            "preferred_username": f"lee-{own}",
        }
        back = {"state": away["state"], "code": "c0de"}
        lee = await exchange("Sessions.FinishProviderLogin", by=anybody, provider=provider, body=back, given=STATE)
        await exchange("IdentityProviders.DeleteIdentityProvider", name=provider)
    for user in (made.json["id"], lee["user"]["id"]):
        await client.request("DELETE", f"/apis/ghippo.io/v1alpha1/users/{user}")


async def test_webhooks_and_audit(client: entrance.Client, own: str) -> None:
    name = f"hook-{own}"
    async with exchanges(client, "Webhooks", "Audits", variables={}, names={"own": own}) as exchange:
        varying = frozenset({"pending", "deliveredSequence", "problem"})
        # No server listens there: the webhook reports the failed delivery, and is deleted again.
        body = {"name": name, "url": "https://127.0.0.1:9/bindings"}
        await exchange("Webhooks.CreateWebhook", body=body, varying=varying)
        change = {"url": "https://127.0.0.1:9/bindings", "disabled": True}
        await exchange("Webhooks.UpdateWebhook", name=name, body=change, varying=varying)
        await exchange("Webhooks.GetWebhook", name=name, varying=varying)
        await exchange("Webhooks.ListWebhooks", only=lambda each: own in each["name"], varying=varying)
        await exchange("Webhooks.DeleteWebhook", name=name)

        def all_there(reply: Any) -> bool:
            return len([each for each in reply["items"] if each["object"] == name]) == 3

        query = {"filter.action": "ghippo.webhooks", "limit": "1000"}
        await exchange(
            "Audits.ListAudits",
            query=query,
            only=lambda each: each["object"] == name,
            when=all_there,
            varying=frozenset({"next"}),
        )
        await exchange("Audits.ExportAudits", query={"filter.since": str(2**40)})
        await exchange("Audits.VerifyAudits", varying=frozenset({"entries"}))
