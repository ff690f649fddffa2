"""The cells of nodes, namespaces, ConfigMaps, service accounts, quotas, volumes, and of Karmada's Clusters."""

from kairship.index.tables.ages import since
from kairship.index.tables.cells import NONE, UNSET, access_modes, condition
from kairship.index.tables.layout import Cell, Object

NODE = (
    *("Name", "Status", "Roles", "Age", "Version"),
    *("Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime"),
)
NAMESPACE = ("Name", "Status", "Age")
CONFIG_MAP = ("Name", "Data", "Age")
SERVICE_ACCOUNT = ("Name", "Age")
RESOURCE_QUOTA = ("Name", "Request", "Limit", "Age")
VOLUME = (
    *("Name", "Capacity", "Access Modes", "Reclaim Policy", "Status", "Claim", "StorageClass"),
    *("VolumeAttributesClass", "Reason", "Age", "VolumeMode"),
)
VOLUME_CLAIM = (
    *("Name", "Status", "Volume", "Capacity", "Access Modes", "StorageClass"),
    *("VolumeAttributesClass", "Age", "VolumeMode"),
)
STORAGE_CLASS = ("Name", "Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion", "Age")
MEMBER = ("Name", "Version", "Mode", "Ready", "Age", "Zones", "Region", "Provider", "API-Endpoint", "Proxy-URL")

_ROLE, _ROLE_PREFIX = "kubernetes.io/role", "node-role.kubernetes.io/"
_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_CLASS = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")


def node(obj: Object) -> list[Cell]:
    ready = condition(obj.status.get("conditions"), "Ready")
    state = "Unknown" if ready is None else "Ready" if ready == "True" else "NotReady"
    info = obj.status.get("nodeInfo") or {}
    unknown = "<unknown>"
    return [
        obj.metadata.name,
        f"{state},SchedulingDisabled" if obj.spec.get("unschedulable") else state,
        ",".join(sorted(_roles(obj))) or NONE,
        since(obj.metadata.creation_timestamp),
        info.get("kubeletVersion", ""),
        _address(obj, "InternalIP"),
        _address(obj, "ExternalIP"),
        *(info.get(each) or unknown for each in ("osImage", "kernelVersion", "containerRuntimeVersion")),
    ]


def namespace(obj: Object) -> list[Cell]:
    return [obj.metadata.name, obj.status.get("phase", ""), since(obj.metadata.creation_timestamp)]


def config_map(obj: Object) -> list[Cell]:
    return [obj.metadata.name, len(obj.data) + len(obj.binary_data), since(obj.metadata.creation_timestamp)]


def service_account(obj: Object) -> list[Cell]:
    return [obj.metadata.name, since(obj.metadata.creation_timestamp)]


def resource_quota(obj: Object) -> list[Cell]:
    hard, used = obj.status.get("hard") or {}, obj.status.get("used") or {}
    requests: list[str] = []
    limits: list[str] = []
    for name in sorted(hard):
        (limits if name.startswith("limits.") else requests).append(f"{name}: {used.get(name, '0')}/{hard[name]}")
    return [obj.metadata.name, ", ".join(requests), ", ".join(limits), since(obj.metadata.creation_timestamp)]


def volume(obj: Object) -> list[Cell]:
    spec = obj.spec
    claim = spec.get("claimRef")
    return [
        obj.metadata.name,
        (spec.get("capacity") or {}).get("storage", "0"),
        access_modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        _phase(obj),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        _class(obj),
        spec.get("volumeAttributesClassName", UNSET),
        obj.status.get("reason", ""),
        since(obj.metadata.creation_timestamp),
        spec.get("volumeMode", UNSET),
    ]


def volume_claim(obj: Object) -> list[Cell]:
    spec, status = obj.spec, obj.status
    bound = bool(spec.get("volumeName"))
    return [
        obj.metadata.name,
        _phase(obj),
        spec.get("volumeName", ""),
        (status.get("capacity") or {}).get("storage", "0") if bound else "",
        access_modes(status.get("accessModes")) if bound else "",
        _class(obj),
        spec.get("volumeAttributesClassName", UNSET),
        since(obj.metadata.creation_timestamp),
        spec.get("volumeMode", UNSET),
    ]


def storage_class(obj: Object) -> list[Cell]:
    is_default = any(obj.metadata.annotations.get(each) == "true" for each in _DEFAULT_CLASS)
    return [
        f"{obj.metadata.name} (default)" if is_default else obj.metadata.name,
        obj.provisioner,
        obj.reclaim_policy,
        obj.volume_binding_mode,
        obj.allow_volume_expansion,
        since(obj.metadata.creation_timestamp),
    ]


def member(obj: Object) -> list[Cell]:
    """A Cluster of Karmada, as Karmada's aggregated API server prints it."""
    spec, status = obj.spec, obj.status
    return [
        obj.metadata.name,
        status.get("kubernetesVersion", ""),
        spec.get("syncMode", ""),
        condition(status.get("conditions"), "Ready") or "Unknown",
        since(obj.metadata.creation_timestamp),
        ",".join(spec.get("zones") or ()) or NONE,
        spec.get("region") or NONE,
        spec.get("provider") or NONE,
        spec.get("apiEndpoint", ""),
        spec.get("proxyURL") or NONE,
    ]


def _roles(obj: Object) -> set[str]:
    labels = obj.metadata.labels
    found = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    return (found | {labels.get(_ROLE, "")}) - {""}


def _address(obj: Object, kind: str) -> str:
    return next((str(each["address"]) for each in obj.status.get("addresses") or () if each["type"] == kind), NONE)


def _phase(obj: Object) -> str:
    return "Terminating" if obj.metadata.deletion_timestamp else str(obj.status.get("phase", ""))


def _class(obj: Object) -> str:
    return obj.metadata.annotations.get(_OLD_CLASS) or str(obj.spec.get("storageClassName") or "")
