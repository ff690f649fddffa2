"""Manifests of a Deployment and of the PropagationPolicy that places it."""

import json
from typing import Any

import yaml


def deployment(name: str, *, replicas: int = 2, **spec: Any) -> dict[str, Any]:
    labels = {"app": name}
    container = {"name": "web", "image": "nginx:1.29", "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template, **spec},
    }


def policy(name: str, *, clusters: list[str]) -> dict[str, Any]:
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": name},
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": name}],
            "placement": {"clusterAffinity": {"clusterNames": clusters}},
        },
    }


def in_yaml(obj: dict[str, Any]) -> str:
    """Returns YAML without aliases, which PyYAML writes for a value that occurs twice."""
    return yaml.safe_dump(json.loads(json.dumps(obj)))
