"""Every operation of the Policy service, for each of its four kinds."""

import json
from typing import Any

from support import entrance
from support.golden import exchanges

PROPAGATES: dict[str, Any] = {
    "propagateDeps": True,
    "priority": 7,
    "placement": {
        "clusterAffinities": [
            {"affinityName": "first", "clusterNames": ["frankfurt"]},
            {
                "affinityName": "second",
                "fieldSelector": {
                    "matchExpressions": [{"key": "region", "operator": "In", "values": ["us-west1", "us-east1"]}]
                },
            },
        ],
        "clusterTolerations": [{"key": "slow", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}],
        "spreadConstraints": [
            {"spreadByField": "region", "minGroups": 1, "maxGroups": 2},
            {"spreadByField": "cluster", "minGroups": 1},
        ],
        "replicaScheduling": {
            "replicaSchedulingType": "Divided",
            "replicaDivisionPreference": "Weighted",
            "weightPreference": {"staticWeightList": [{"targetCluster": {"clusterNames": ["frankfurt"]}, "weight": 2}]},
        },
    },
}
OVERRIDES: dict[str, Any] = {
    "overrideRules": [
        {
            "targetCluster": {"clusterNames": ["oregon"]},
            "overriders": {
                "plaintext": [{"path": "/spec/replicas", "operator": "replace", "value": 3}],
                "imageOverrider": [{"component": "Tag", "operator": "replace", "value": "1.29"}],
                "labelsOverrider": [{"operator": "add", "value": {"a": "b"}}],
            },
        }
    ]
}


async def test_every_operation(client: entrance.Client, namespace: str, own: str) -> None:
    name = f"rule-{own}"
    about = {"resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap", "name": own}]}
    where = {"instance": "demo", "namespace": namespace, "name": name}
    async with exchanges(client, "Policy", variables=where, names={"own": own}) as exchange:
        for one, many, spec in (
            ("PropagationPolicy", "PropagationPolicies", PROPAGATES | about),
            ("OverridePolicy", "OverridePolicies", OVERRIDES | about),
            ("ClusterPropagationPolicy", "ClusterPropagationPolicies", PROPAGATES | about),
            ("ClusterOverridePolicy", "ClusterOverridePolicies", OVERRIDES | about),
        ):
            manifest: dict[str, Any] = {
                "apiVersion": "policy.karmada.io/v1alpha1",
                "kind": one,
                "metadata": {"name": name},
                "spec": spec,
            }
            await exchange(f"Policy.Create{one}", body={"data": json.dumps(manifest)})
            await exchange(f"Policy.Get{one}")
            await exchange(f"Policy.List{many}", query={"kind": "ConfigMap", "kindName": own, "pageSize": "10"})
            if not one.startswith("Cluster"):
                await exchange(f"Policy.ListInstance{many}", query={"name": own, "sortBy": "field_name"})
            manifest["metadata"]["labels"] = {"team": "shop"}
            await exchange(f"Policy.Update{one}", body={"data": json.dumps(manifest)})
            await exchange(f"Policy.Get{one}JSON")
            await exchange(f"Policy.Delete{one}")
