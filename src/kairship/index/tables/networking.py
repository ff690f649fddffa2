"""The cells of Services, Ingresses, endpoints and network policies."""

from collections.abc import Mapping
from typing import Any

from kairship.index.tables.ages import since
from kairship.index.tables.cells import NONE, UNSET, first_few, labels_text, selector_text
from kairship.index.tables.layout import Cell, Object

SERVICE = ("Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "Selector")
INGRESS = ("Name", "Class", "Hosts", "Address", "Ports", "Age")
INGRESS_CLASS = ("Name", "Controller", "Parameters", "Age")
ENDPOINTS = ("Name", "Endpoints", "Age")
ENDPOINT_SLICE = ("Name", "AddressType", "Ports", "Endpoints", "Age")
NETWORK_POLICY = ("Name", "Pod-Selector", "Age")


def service(obj: Object) -> list[Cell]:
    addresses = obj.spec.get("clusterIPs") or ()
    return [
        obj.metadata.name,
        obj.spec.get("type", ""),
        addresses[0] if addresses else NONE,
        _external(obj),
        ",".join(_port(each) for each in obj.spec.get("ports") or ()) or NONE,
        since(obj.metadata.creation_timestamp),
        labels_text(obj.spec.get("selector")),
    ]


def ingress(obj: Object) -> list[Cell]:
    return [
        obj.metadata.name,
        obj.spec.get("ingressClassName", NONE),
        _hosts(obj),
        _balanced(obj),
        "80, 443" if obj.spec.get("tls") else "80",
        since(obj.metadata.creation_timestamp),
    ]


def ingress_class(obj: Object) -> list[Cell]:
    parameters = obj.spec.get("parameters")
    named = NONE
    if parameters is not None:
        group = parameters.get("apiGroup")
        named = f"{parameters['kind']}{'.' + group if group is not None else ''}/{parameters['name']}"
    return [obj.metadata.name, obj.spec.get("controller", ""), named, since(obj.metadata.creation_timestamp)]


def endpoints(obj: Object) -> list[Cell]:
    found = [
        address["ip"] if port is None else _host_port(address["ip"], port["port"])
        for subset in obj.subsets
        for port in subset.get("ports") or [None]
        for address in subset.get("addresses") or ()
    ]
    return [obj.metadata.name, first_few(found) if obj.subsets else NONE, since(obj.metadata.creation_timestamp)]


def endpoint_slice(obj: Object) -> list[Cell]:
    addresses = [address for endpoint in obj.endpoints for address in endpoint.get("addresses") or ()]
    ports = [str(each.get("port", each.get("name", "*"))) for each in obj.ports]
    return [
        obj.metadata.name,
        obj.address_type,
        first_few(ports, empty=UNSET),
        first_few(addresses, empty=UNSET),
        since(obj.metadata.creation_timestamp),
    ]


def network_policy(obj: Object) -> list[Cell]:
    selected = selector_text(obj.spec.get("podSelector")) or NONE
    return [obj.metadata.name, selected, since(obj.metadata.creation_timestamp)]


def _external(obj: Object) -> str:
    given = obj.spec.get("externalIPs") or []
    match obj.spec.get("type"):
        case "ClusterIP" | "NodePort":
            return ",".join(given) or NONE
        case "LoadBalancer":
            balanced = _balanced(obj)
            return ",".join([*([balanced] if balanced else []), *given]) or "<pending>"
        case "ExternalName":
            return str(obj.spec.get("externalName", ""))
        case _:
            return "<unknown>"


def _balanced(obj: Object) -> str:
    found = (obj.status.get("loadBalancer") or {}).get("ingress") or ()
    return ",".join(sorted({each.get("ip") or each.get("hostname") or "" for each in found} - {""}))


def _port(port: Mapping[str, Any]) -> str:
    node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port['port']}{node}/{port.get('protocol', '')}"


def _hosts(obj: Object) -> str:
    rules = obj.spec.get("rules") or ()
    shown: list[str] = []
    for rule in rules:
        if len(shown) == 3:
            # API servers count the remaining rules here, not the remaining hosts.
            return f"{','.join(shown)} + {len(rules) - 3} more..."
        if rule.get("host"):
            shown.append(rule["host"])
    return ",".join(shown) or "*"


def _host_port(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
