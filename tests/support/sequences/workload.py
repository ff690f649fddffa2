"""The Deployment that a lane places in its clusters, and its PropagationPolicy."""

from kairship.kube import Object

WORKLOAD = "app"
_SELECTED = {"matchLabels": {"app": WORKLOAD}}
_DEPLOYMENT: Object = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": WORKLOAD, "labels": {"app": WORKLOAD}},
    "spec": {
        "replicas": 1,
        "selector": _SELECTED,
        "template": {
            "metadata": {"labels": {"app": WORKLOAD}},
            "spec": {"containers": [{"name": "web", "image": "nginx:1.29"}]},
        },
    },
}
_POLICY: Object = {
    "apiVersion": "policy.karmada.io/v1alpha1",
    "kind": "PropagationPolicy",
    "metadata": {"name": WORKLOAD},
    "spec": {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": WORKLOAD}], "placement": {}},
}
PLACED: tuple[tuple[str, Object], ...] = (
    ("apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies", _POLICY),
    ("apis/apps/v1/namespaces/default/deployments", _DEPLOYMENT),
)
"""The paths of the collections, and the manifests."""
