"""The plane's own processes, run as they are in production: each a ServiceAccount of the global cluster.

`install` puts our kinds, the accounts and their rights into the global cluster; `processes` are the specifications for
the supervisor. A process knows its kubeconfig, which names a token file; the token keeper keeps that file fresh.
How the apiserver is reached from outside is a matter of `entrance`.
"""

import asyncio
import base64
import secrets
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from kairship.apiserver import rbac as apiserver
from kairship.controllers import rbac as controllers
from kairship.controlplane import ControlPlane, kubernetes
from kairship.controlplane.pki import write_private
from kairship.embedded import container_management, entrance, global_management, inside
from kairship.embedded.home import Home
from kairship.engine import Engine
from kairship.ghippo import rbac as ghippo
from kairship.instances.drivers.waiting import until
from kairship.kpanda import rbac as kpanda
from kairship.kube import AlreadyExists, Client, Connection, NotFound, TooManyRequests, kinds
from kairship.reconcile import resource_of
from kairship.resources import ACCESS_BINDINGS, DEFINITIONS, NAMESPACE, admission_policies, crds
from kairship.resources.binding_webhook import CURRENT, SECRET
from kairship.supervisor import HttpProbe, ProcessSpec, SupervisorClient, TcpProbe

GROUP = "kairship"
APISERVER = f"{GROUP}/apiserver"
CONTROLLER_MANAGER = f"{GROUP}/controller-manager"
GHIPPO = f"{GROUP}/ghippo"
KPANDA = f"{GROUP}/kpanda"
TOKEN_KEEPER = f"{GROUP}/token-keeper"
FIELD_MANAGER = "kairship"
PATIENCE = 60.0

_KEEPER = "kairship:token-keeper"
_PROCESSES = (controllers, apiserver, ghippo, kpanda)
_ACCOUNTS = tuple(process.ACCOUNT for process in _PROCESSES)
_BEHIND = (global_management.ROLE, container_management.ROLE)
"""The roles that the apiserver passes requests on to."""
_PORTS = ("token-keeper", "controller-manager", *entrance.PORTS, *global_management.PORTS, *container_management.PORTS)
_RBAC = "rbac.authorization.k8s.io"

Manifest = dict[str, Any]


async def install(client: Client) -> None:
    """Everything of ours that the global cluster must know. Idempotent."""
    await _apply(client, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    rights = (manifest for process in _PROCESSES for manifest in process.manifests())
    for manifest in (*crds(), *rights, *_keeper_rights()):
        await _apply(client, manifest)
    await until(lambda: _served(client), what="our kinds being served", timeout=PATIENCE)
    for manifest in admission_policies():
        await _apply(client, manifest)
    await _ensure_webhook_secret(client)


async def wait_for_administrator(client: Client) -> None:
    """Until the right of the administrator has come from global management."""

    async def missing() -> str | None:
        stored = await client.list(resource_of(ACCESS_BINDINGS), limit=1)
        return None if stored.items else "there is no binding yet"

    await until(missing, what="the right of the administrator", timeout=PATIENCE)


async def reach(supervisor: SupervisorClient, home: Home) -> entrance.Entrance:
    """How the plane is entered."""
    return await asyncio.to_thread(entrance.prepare, home, await supervisor.allocate_ports(GROUP, _PORTS))


async def processes(supervisor: SupervisorClient, plane: ControlPlane, home: Home, engine: Engine) -> list[ProcessSpec]:
    """What runs the plane, which makes instances with this engine. Writes the kubeconfigs that they read."""
    ports = await supervisor.allocate_ports(GROUP, _PORTS)
    reached = await asyncio.to_thread(entrance.prepare, home, ports)
    await asyncio.to_thread(global_management.prepare, home)
    directory = home.roles
    kubernetes.ensure_user(plane, "token-keeper", common_name=_KEEPER)
    for account in _ACCOUNTS:
        connection = Connection(
            server=plane.server,
            ca=plane.pki.authority_bundle("ca"),
            token_file=str(directory / f"{account}.token"),
        )
        write_private(directory / f"{account}.kubeconfig", connection.to_kubeconfig(name="global", user=account))
    return [
        _token_keeper(plane, home, ports),
        _controller_manager(plane, home, ports, engine),
        global_management.process(
            home, ports, name=GHIPPO, after=(TOKEN_KEEPER, plane.process("kube-apiserver")), reached=reached
        ),
        container_management.process(home, ports, name=KPANDA, after=(TOKEN_KEEPER, plane.process("kube-apiserver"))),
        entrance.process(
            home,
            ports,
            name=APISERVER,
            after=(TOKEN_KEEPER, GHIPPO, plane.process("kube-apiserver")),
            versions=engine.karmada_versions(),
            behind=_BEHIND,
        ),
    ]


def _token_keeper(plane: ControlPlane, home: Home, ports: Mapping[str, int]) -> ProcessSpec:
    kubeconfig = plane.kubeconfig("token-keeper")
    tokens = [(account, "", home.roles / f"{account}.token") for account in _ACCOUNTS]
    for role in _BEHIND:
        path = inside.token_file(home, apiserver.ACCOUNT, role)
        tokens.append((apiserver.ACCOUNT, inside.audience(role), path))
    return ProcessSpec(
        name=TOKEN_KEEPER,
        argv=(
            sys.executable,
            "-m",
            "kairship.embedded.token_keeper",
            f"--kubeconfig={kubeconfig}",
            f"--namespace={NAMESPACE}",
            *(part for account, audience, path in tokens for part in ("--token", account, audience, str(path))),
            f"--port={ports['token-keeper']}",
        ),
        cwd=str(home.roles),
        after=(plane.process("kube-apiserver"),),
        probe=TcpProbe(port=ports["token-keeper"]),
        files=(str(kubeconfig),),
        ports=(ports["token-keeper"],),
    )


def _controller_manager(plane: ControlPlane, home: Home, ports: Mapping[str, int], engine: Engine) -> ProcessSpec:
    kubeconfig = home.roles / f"{controllers.ACCOUNT}.kubeconfig"
    port = ports["controller-manager"]
    return ProcessSpec(
        name=CONTROLLER_MANAGER,
        argv=(
            sys.executable,
            "-m",
            "kairship",
            "controller-manager",
            f"--kubeconfig={kubeconfig}",
            f"--data-dir={home.root}",
            f"--backups={home.backups}",
            f"--port={port}",
            inside.ON_THIS_MACHINE,
        ),
        env=engine.environment,
        cwd=str(home.roles),
        after=(TOKEN_KEEPER, plane.process("kube-apiserver")),
        probe=HttpProbe(url=f"http://127.0.0.1:{port}/readyz"),
        files=(str(kubeconfig),),
        ports=(port,),
        # Work in progress is stopped and the lease released: then another may lead at once.
        stop_timeout=15.0,
    )


def _keeper_rights() -> list[Manifest]:
    metadata = {"name": "kairship-token-keeper", "namespace": NAMESPACE}
    rule = {
        "apiGroups": [""],
        "resources": ["serviceaccounts/token"],
        "resourceNames": list(_ACCOUNTS),
        "verbs": ["create"],
    }
    return [
        {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": metadata["name"]},
            "subjects": [{"apiGroup": _RBAC, "kind": "User", "name": _KEEPER}],
        },
    ]


async def _ensure_webhook_secret(client: Client) -> None:
    """Made once: global management signs with it, the apiserver verifies with it."""
    content = {CURRENT: base64.b64encode(secrets.token_urlsafe(32).encode()).decode()}
    with suppress(AlreadyExists):
        await client.create(kinds.SECRETS, {"metadata": {"name": SECRET}, "data": content}, namespace=NAMESPACE)


async def _served(client: Client) -> str | None:
    for definition in DEFINITIONS:
        try:
            await client.list(resource_of(definition), limit=1)
        except (NotFound, TooManyRequests):
            return f"{definition.plural} are not served yet"
    return None


async def _apply(client: Client, manifest: Manifest) -> None:
    await client.apply_object(manifest, field_manager=FIELD_MANAGER)
