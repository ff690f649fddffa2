"""What a new plane contains: three members of different sizes in different regions, and a Deployment in all of them."""

from typing import Any

from kairship.embedded.members import MemberSpec
from kairship.embedded.nodes import NodeGroup

INSTANCE = "demo"

MEMBERS = (
    MemberSpec(
        name="frankfurt",
        provider="aws",
        region="eu-central-1",
        nodes=(
            NodeGroup(zone="eu-central-1a", count=3, cpu="8", memory="32Gi"),
            NodeGroup(zone="eu-central-1b", count=2, cpu="8", memory="32Gi"),
        ),
    ),
    MemberSpec(
        name="oregon",
        provider="gcp",
        region="us-west1",
        nodes=(NodeGroup(zone="us-west1-a", count=2, cpu="16", memory="64Gi"),),
    ),
    MemberSpec(
        name="singapore",
        provider="azure",
        region="southeastasia",
        nodes=(NodeGroup(zone="southeastasia-1", count=1, cpu="4", memory="16Gi"),),
    ),
)


def workload() -> list[dict[str, Any]]:
    """A Deployment, and a policy that divides its replicas over the members by their free capacity."""
    labels = {"app": "hello"}
    return [
        {
            "apiVersion": "policy.karmada.io/v1alpha1",
            "kind": "PropagationPolicy",
            "metadata": {"name": "hello", "namespace": "default"},
            "spec": {
                "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "hello"}],
                "placement": {
                    "replicaScheduling": {
                        "replicaSchedulingType": "Divided",
                        "replicaDivisionPreference": "Weighted",
                        "weightPreference": {"dynamicWeight": "AvailableReplicas"},
                    }
                },
            },
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "hello", "namespace": "default", "labels": labels},
            "spec": {
                "replicas": 12,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "containers": [
                            {
                                "name": "web",
                                "image": "nginx:1.29",
                                "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
                            }
                        ]
                    },
                },
            },
        },
    ]
