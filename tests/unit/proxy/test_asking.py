"""Requests are understood as Kubernetes' own authorisers understand them."""

import pytest

from kairship.apiserver.proxy.asking import Asked, AskedPath, asked


@pytest.mark.parametrize(
    ("request_line", "verb", "group", "resource", "subresource", "namespace", "name"),
    [
        ("GET /api/v1/namespaces/web/pods/a", "get", "", "pods", "", "web", "a"),
        ("GET /api/v1/namespaces/web/pods", "list", "", "pods", "", "web", ""),
        ("GET /api/v1/pods", "list", "", "pods", "", "", ""),
        ("GET /api/v1/pods?watch=true", "watch", "", "pods", "", "", ""),
        ("GET /api/v1/pods?watch=1", "watch", "", "pods", "", "", ""),
        ("GET /api/v1/pods?watch=", "watch", "", "pods", "", "", ""),
        ("GET /api/v1/pods?watch=false", "list", "", "pods", "", "", ""),
        ("GET /api/v1/pods/a/b?watch=true", "get", "", "pods", "b", "", "a"),
        ("POST /apis/apps/v1/namespaces/web/deployments", "create", "apps", "deployments", "", "web", ""),
        ("PUT /apis/apps/v1/namespaces/web/deployments/a/scale", "update", "apps", "deployments", "scale", "web", "a"),
        ("PATCH /apis/apps/v1/namespaces/web/deployments/a", "patch", "apps", "deployments", "", "web", "a"),
        ("DELETE /apis/apps/v1/namespaces/web/deployments/a", "delete", "apps", "deployments", "", "web", "a"),
        ("DELETE /apis/apps/v1/namespaces/web/deployments", "deletecollection", "apps", "deployments", "", "web", ""),
        ("POST /api/v1/namespaces/web/pods/a/exec?command=sh", "create", "", "pods", "exec", "web", "a"),
        ("GET /api/v1/namespaces/web/services/a/proxy/deep/er", "get", "", "services", "proxy", "web", "a"),
        ("GET /api/v1/namespaces", "list", "", "namespaces", "", "", ""),
        ("GET /api/v1/namespaces/web", "get", "", "namespaces", "", "web", "web"),
        ("PUT /api/v1/namespaces/web/finalize", "update", "", "namespaces", "finalize", "web", "web"),
        ("GET /apis/cluster.karmada.io/v1alpha1/clusters/c/proxy/api", "get", "cluster.karmada.io", "clusters", "proxy",
         "", "c"),
        ("GET /api/v1/nodes/n%3A1", "get", "", "nodes", "", "", "n:1"),
    ],
)  # fmt: skip
def test_of_a_resource(
    request_line: str, verb: str, group: str, resource: str, subresource: str, namespace: str, name: str
) -> None:
    method, _, rest = request_line.partition(" ")
    path, _, query = rest.partition("?")
    parameters = dict(part.partition("=")[::2] for part in query.split("&") if part)
    found = asked(method, path, parameters)
    assert isinstance(found, Asked)
    seen = found.attributes
    assert (seen.verb, seen.group, seen.resource, seen.subresource, seen.namespace, found.name) == (
        verb, group, resource, subresource, namespace, name,
    )  # fmt: skip


@pytest.mark.parametrize(
    "path", ["/", "/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/version", "/openapi/v3", "/healthz",
             "/api/v1/watch/pods", "/api/v1/proxy/nodes/x"],
)  # fmt: skip
def test_of_no_resource(path: str) -> None:
    assert asked("GET", path, {}) == AskedPath(verb="get", path=path)
