"""The plane's own processes. As in production, each runs with a ServiceAccount of the global cluster.

`install` puts our kinds, the ServiceAccounts and their RBAC into the global cluster. `processes` returns the
specifications for the supervisor. Each process is given a kubeconfig that names a token file, and the token keeper
renews the token in that file. `entrance` has what clients outside need in order to call the apiserver.
"""

import asyncio
import base64
import secrets
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from kairship.apiserver import rbac as apiserver
from kairship.controllers import rbac as controllers
from kairship.controlplane import ControlPlane, kubernetes
from kairship.controlplane.pki import write_private
from kairship.embedded import backends, container_management, entrance, global_management, metrics_token
from kairship.embedded.home import Home
from kairship.engine import Engine
from kairship.ghippo import rbac as ghippo
from kairship.instances.drivers.polling import until
from kairship.kpanda import rbac as kpanda
from kairship.kube import AlreadyExists, Client, Connection, NotFound, TooManyRequests, kinds
from kairship.process.loopback import LOOPBACK
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
SETUP_TIMEOUT = 60.0

_KEEPER = "kairship:token-keeper"
_PROCESSES = (controllers, apiserver, ghippo, kpanda)
_ACCOUNTS = tuple(process.ACCOUNT for process in _PROCESSES)
_BACKENDS = (global_management.BACKEND, container_management.BACKEND)
_PORTS = ("token-keeper", "controller-manager", *entrance.PORTS, *global_management.PORTS, *container_management.PORTS)
_RBAC = "rbac.authorization.k8s.io"

Manifest = dict[str, Any]


async def install(client: Client) -> None:
    """Install our kinds, ServiceAccounts, RBAC and admission policies in the global cluster. Idempotent."""
    await _apply(client, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    rbac = (manifest for process in _PROCESSES for manifest in process.manifests())
    for manifest in (*crds(), *rbac, *_token_keeper_rbac()):
        await _apply(client, manifest)
    await until(lambda: _served(client), what="our kinds being served", timeout=SETUP_TIMEOUT)
    for manifest in admission_policies():
        await _apply(client, manifest)
    await _ensure_webhook_secret(client)


async def wait_for_administrator(client: Client) -> None:
    """Return when ghippo has delivered the access binding of the administrator."""

    async def missing() -> str | None:
        stored = await client.list(resource_of(ACCESS_BINDINGS), limit=1)
        return None if stored.items else "ghippo has not delivered an access binding yet"

    await until(missing, what="the access binding of the administrator", timeout=SETUP_TIMEOUT)


async def ensure_entrance(supervisor: SupervisorClient, home: Home) -> entrance.Entrance:
    """The entrance of the plane, with its ports allocated and its certificate and access token in place."""
    return await asyncio.to_thread(entrance.prepare, home, await supervisor.allocate_ports(GROUP, _PORTS))


async def processes(supervisor: SupervisorClient, plane: ControlPlane, home: Home, engine: Engine) -> list[ProcessSpec]:
    """The processes of the plane, which creates instances with `engine`. Writes the kubeconfigs that they read."""
    ports = await supervisor.allocate_ports(GROUP, _PORTS)
    receiver = await asyncio.to_thread(entrance.prepare, home, ports)
    await asyncio.to_thread(global_management.prepare, home)
    reserved = tuple(f"--reserve-namespace={name}" for name in home.read().reserved_namespaces)
    directory = home.processes
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
        _controller_manager(plane, home, ports, engine, flags=reserved),
        global_management.process(
            home, ports, name=GHIPPO, after=(TOKEN_KEEPER, plane.process("kube-apiserver")), receiver=receiver
        ),
        container_management.process(home, ports, name=KPANDA, after=(TOKEN_KEEPER, plane.process("kube-apiserver"))),
        entrance.process(
            home,
            ports,
            name=APISERVER,
            after=(TOKEN_KEEPER, GHIPPO, plane.process("kube-apiserver")),
            versions=engine.karmada_versions(),
            backend_names=_BACKENDS,
            flags=reserved,
        ),
    ]


def _token_keeper(plane: ControlPlane, home: Home, ports: Mapping[str, int]) -> ProcessSpec:
    kubeconfig = plane.kubeconfig("token-keeper")
    tokens = [(account, "", home.processes / f"{account}.token") for account in _ACCOUNTS]
    for backend in _BACKENDS:
        path = backends.token_file(home, apiserver.ACCOUNT, backend)
        tokens.append((apiserver.ACCOUNT, backends.audience(backend), path))
    return ProcessSpec(
        name=TOKEN_KEEPER,
        argv=(
            sys.executable,
            "-m",
            "kairship.embedded.token_keeper",
            f"--kubeconfig={kubeconfig}",
            f"--namespace={NAMESPACE}",
            *(word for account, audience, path in tokens for word in ("--token", account, audience, str(path))),
            f"--port={ports['token-keeper']}",
        ),
        cwd=str(home.processes),
        after=(plane.process("kube-apiserver"),),
        probe=TcpProbe(port=ports["token-keeper"]),
        files=(str(kubeconfig),),
        ports=(ports["token-keeper"],),
    )


def _controller_manager(
    plane: ControlPlane, home: Home, ports: Mapping[str, int], engine: Engine, *, flags: Sequence[str]
) -> ProcessSpec:
    kubeconfig = home.processes / f"{controllers.ACCOUNT}.kubeconfig"
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
            metrics_token.flag(home),
            backends.ALLOW_LOOPBACK,
            *flags,
        ),
        env=engine.environment,
        cwd=str(home.processes),
        after=(TOKEN_KEEPER, plane.process("kube-apiserver")),
        probe=HttpProbe(url=f"http://{LOOPBACK}:{port}/readyz"),
        files=(str(kubeconfig),),
        ports=(port,),
        # Reconciles are stopped and the lease is released, so that another replica can lead at once.
        stop_timeout=15.0,
    )


def _token_keeper_rbac() -> list[Manifest]:
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
    """Create the Secret with which ghippo signs its deliveries and the apiserver verifies them, if it is missing."""
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
