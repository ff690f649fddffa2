"""The objects inside a Karmada instance without which its processes cannot work.

CRDs, conversion and admission webhooks, aggregated API services and default roles come from the manifests of the same
version that runs; only addresses and certificates are ours. All objects are server-side applied, so applying them again
changes nothing, and applying the manifests of another version upgrades them.
"""

import asyncio
import base64
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from kairship.controlplane import karmada
from kairship.controlplane.control_plane import ControlPlane
from kairship.controlplane.karmada import KarmadaSettings
from kairship.engine import Engine
from kairship.instances.drivers.polling import until
from kairship.kube import Client, kinds
from kairship.process.loopback import LOOPBACK

FIELD_MANAGER = "kairship-driver"
PATIENCE = 60.0

Manifest = dict[str, Any]

# Bindings are stored in one version and served in two: these CRDs are converted by Karmada's webhook.
_CONVERTED = frozenset({"resourcebindings.work.karmada.io", "clusterresourcebindings.work.karmada.io"})
_WEBHOOK_ADDRESS = "https://karmada-webhook.karmada-system.svc:443"
_ADDON_SERVICES = {
    karmada.SEARCH: "karmada-search-apiservice.yaml",
    karmada.METRICS_ADAPTER: "karmada-metrics-adapter-apiservice.yaml",
}


class Bootstrap:
    """Applies the objects of one instance through a client with all permissions in it."""

    def __init__(self, client: Client, plane: ControlPlane, engine: Engine, settings: KarmadaSettings) -> None:
        self._client = client
        self._plane = plane
        self._settings = settings
        self._crds = engine.karmada_crds(settings.version)
        self._manifests = engine.karmada_manifests(settings.version)
        self._authority = base64.b64encode(plane.pki.authority_bundle("ca")).decode()

    async def apply_crds(self) -> None:
        await self._apply([_namespace(karmada.NAMESPACE), _namespace("karmada-cluster")])
        files = sorted(self._crds.glob("bases/*/*.yaml"))
        definitions = [self._converted(manifest) for manifest in await asyncio.to_thread(_documents, files)]
        names = {manifest["metadata"]["name"] for manifest in definitions}
        await self._apply(definitions)

        async def established() -> str | None:
            page = await self._client.list(kinds.CRDS)
            ready = {item["metadata"]["name"] for item in page.items if _condition(item, "Established") == "True"}
            missing = names - ready
            return f"not established: {', '.join(sorted(missing))}" if missing else None

        await until(established, what="Karmada's resource definitions being served", timeout=PATIENCE)

    async def apply_aggregated_api(self) -> None:
        manifest = "karmada-aggregated-apiserver-apiservice.yaml"
        await self._apply(self._aggregated(manifest, karmada.AGGREGATED_APISERVER))
        await self._wait_available(manifest)

    async def apply_roles(self) -> None:
        files = ("cluster-proxy-admin-rbac.yaml", "admin-clusterrole-aggregation.yaml")
        await self._apply(_documents(self._manifests / name for name in files))

    async def apply_admission(self) -> None:
        await self._apply(self._rendered("webhook-configuration.yaml"))

    async def apply_addon_apis(self) -> None:
        """Applies the API services of enabled add-ons and deletes the others, which would block namespace deletion."""
        for component, manifest in _ADDON_SERVICES.items():
            if component in self._addons():
                await self._apply(self._aggregated(manifest, component))
            else:
                await self._delete(self._rendered(manifest))

    async def wait_addon_apis(self) -> None:
        for component in self._addons():
            await self._wait_available(_ADDON_SERVICES[component])

    def _addons(self) -> list[str]:
        enabled = {karmada.SEARCH: self._settings.search, karmada.METRICS_ADAPTER: self._settings.metrics_adapter}
        return [component for component, is_on in enabled.items() if is_on]

    async def apply_estimator_services(self) -> None:
        """Applies the services by which the schedulers find the estimator of each member, at ports of this machine."""
        names = map(karmada.estimator_of, self._settings.running_estimators)
        wanted = {name: _estimator_service(name, self._plane.ports[name]) for name in names}
        page = await self._client.list(kinds.SERVICES, namespace=karmada.NAMESPACE)
        present = {item["metadata"]["name"] for item in page.items}
        for name in present - wanted.keys():
            if name.startswith(f"{karmada.ESTIMATOR}-"):
                await self._client.delete(kinds.SERVICES, name, namespace=karmada.NAMESPACE, missing_ok=True)
        await self._apply(wanted.values())

    def _aggregated(self, manifest: str, component: str) -> list[Manifest]:
        """Returns the objects of an aggregated API that a process on this machine serves."""
        objects = self._rendered(manifest)
        for item in objects:
            if item["kind"] == "Service":
                item["spec"]["externalName"] = "localhost"
            elif item["kind"] == "APIService":
                item["spec"]["service"]["port"] = self._plane.ports[component]
        return objects

    async def _wait_available(self, manifest: str) -> None:
        """Waits until the API server reaches the API services of the manifest."""
        services = [item["metadata"]["name"] for item in self._rendered(manifest) if item["kind"] == "APIService"]

        async def available() -> str | None:
            for name in services:
                item = await self._client.get(kinds.API_SERVICES, name)
                if _condition(item, "Available") != "True":
                    return f"{name}: {_message(item, 'Available')}"
            return None

        await until(available, what=f"{' and '.join(services)} being available", timeout=PATIENCE)

    def _rendered(self, name: str) -> list[Manifest]:
        text = (self._manifests / name).read_text()
        local = f"https://{LOOPBACK}:{self._plane.ports[karmada.WEBHOOK]}"
        text = text.replace("{{caBundle}}", self._authority).replace(_WEBHOOK_ADDRESS, local)
        return [document for document in yaml.load_all(text, yaml.CSafeLoader) if document]

    def _converted(self, manifest: Manifest) -> Manifest:
        if manifest["metadata"]["name"] in _CONVERTED:
            url = f"https://{LOOPBACK}:{self._plane.ports[karmada.WEBHOOK]}/convert"
            manifest["spec"]["conversion"] = {
                "strategy": "Webhook",
                "webhook": {
                    "clientConfig": {"url": url, "caBundle": self._authority},
                    "conversionReviewVersions": ["v1"],
                },
            }
        return manifest

    async def _apply(self, objects: Iterable[Manifest]) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for item in objects:
                    group.create_task(self._client.apply_object(item, field_manager=FIELD_MANAGER))
        except ExceptionGroup as failures:
            # The error of a failed step is about an object, not about a group of tasks.
            raise failures.exceptions[0] from failures

    async def _delete(self, objects: Iterable[Manifest]) -> None:
        for item in objects:
            resource = kinds.API_SERVICES if item["kind"] == "APIService" else kinds.SERVICES
            metadata = item["metadata"]
            await self._client.delete(resource, metadata["name"], namespace=metadata.get("namespace"), missing_ok=True)


def _documents(paths: Iterable[Path]) -> list[Manifest]:
    return [document for path in paths for document in yaml.load_all(path.read_text(), yaml.CSafeLoader) if document]


def _namespace(name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _estimator_service(name: str, port: int) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": karmada.NAMESPACE},
        "spec": {
            "type": "ExternalName",
            "externalName": "localhost",
            "ports": [{"name": "grpc", "port": karmada.ESTIMATOR_SERVICE_PORT, "targetPort": port}],
        },
    }


def _conditions(item: Manifest, kind: str) -> Manifest:
    conditions = item.get("status", {}).get("conditions") or []
    return next((condition for condition in conditions if condition["type"] == kind), {})


def _condition(item: Manifest, kind: str) -> str:
    return str(_conditions(item, kind).get("status", "Unknown"))


def _message(item: Manifest, kind: str) -> str:
    return str(_conditions(item, kind).get("message", "no status yet"))
