"""What people write with the Python client of Kubernetes: run as `python python_client.py KUBECONFIG NAMESPACE`.

It says as JSON what it has seen. A process of its own, for that client blocks, and warns of its own dependencies.
"""

# mypy: ignore-errors
# What people write with it is not typed, and its own types are not those that it takes.

import json
import sys
import threading

from kubernetes import client, config, dynamic, watch


def main() -> None:
    config.load_kube_config(sys.argv[1])
    namespace = sys.argv[2]
    core = client.CoreV1Api()
    seen: list[list[str]] = []
    version = core.list_namespaced_config_map(namespace).metadata.resource_version

    def follow() -> None:
        stream = watch.Watch().stream(
            core.list_namespaced_config_map, namespace, resource_version=version, timeout_seconds=30
        )
        for event in stream:
            seen.append([event["type"], event["object"].metadata.name])
            if event["type"] == "DELETED":
                return

    following = threading.Thread(target=follow)
    following.start()
    core.create_namespaced_config_map(namespace, client.V1ConfigMap(metadata={"name": "python"}, data={"a": "1"}))
    core.patch_namespaced_config_map("python", namespace, {"data": {"a": "2"}})
    read = core.read_namespaced_config_map("python", namespace).data
    core.delete_namespaced_config_map("python", namespace)
    following.join(40)
    found = dynamic.DynamicClient(client.ApiClient()).resources.get(
        api_version="cluster.karmada.io/v1alpha1", kind="Cluster"
    )
    clusters = [item.metadata.name for item in found.get().items]
    try:
        core.read_namespaced_config_map("no-such-thing", namespace)
        missing = 200
    except client.ApiException as error:
        missing = error.status
    git = client.VersionApi().get_code().git_version
    said = {"seen": seen, "read": read, "clusters": clusters, "missing": missing, "version": git}
    sys.stdout.write(json.dumps(said))


if __name__ == "__main__":
    main()
