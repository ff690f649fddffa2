"""Requests are understood as Kubernetes' own authorisers understand them."""

import pytest

from kairship.access import Attributes
from kairship.apiserver.proxy.request.request_info import NonResourceRequest, ResourceRequest, parse_request_info


@pytest.mark.parametrize(
    ("request_line", "verb", "group", "resource", "subresource", "namespace", "name"),
    [
        ("GET /api/v1/namespaces/web/pods/a", "get", "", "pods", "", "web", "a"),
        ("GET /api/v1/namespaces/web/pods", "list", "", "pods", "", "web", ""),
        ("GET /api/v1/pods", "list", "", "pods", "", "", ""),
        ("GET /api/v1/pods?watch=true", "watch", "", "pods", "", "", ""),
        ("GET /api/v1/pods?watch=1", "watch", "", "pods", "", "", ""),
        ("GET /api/v1/pods?watch=", "watch", "", "pods", "", "", ""),
        ("GET /api/v1/pods?watch=False", "list", "", "pods", "", "", ""),
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
        ("PUT /api/v1/namespaces/web/finalize/x", "update", "", "namespaces", "finalize", "web", "web"),
        ("GET /api/v1/namespaces/web/status/x/y", "get", "", "namespaces", "status", "web", "web"),
        ("GET /apis/apps/v1/namespaces/watch/deployments", "list", "apps", "deployments", "", "watch", ""),
        ("GET /apis/cluster.karmada.io/v1alpha1/clusters/c/proxy/api", "get", "cluster.karmada.io", "clusters", "proxy",
         "", "c"),
        ("GET /api/v1/nodes/n%3A1", "get", "", "nodes", "", "", "n:1"),
    ],
)  # fmt: skip
def test_a_request_for_a_resource(
    request_line: str, verb: str, group: str, resource: str, subresource: str, namespace: str, name: str
) -> None:
    method, _, rest = request_line.partition(" ")
    path, _, query = rest.partition("?")
    parameters = dict(part.partition("=")[::2] for part in query.split("&") if part)
    found = parse_request_info(method, path, parameters)
    assert isinstance(found, ResourceRequest)
    wanted = Attributes(verb=verb, group=group, resource=resource, subresource=subresource, namespace=namespace)
    assert (found.attributes, found.name) == (wanted, name)


@pytest.mark.parametrize(
    "path", ["/", "/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/version", "/openapi/v3", "/healthz",
             "/api/v1/watch", "/api/v1/watch/pods", "/apis/apps/v1/watch/deployments", "/api/v1/proxy/nodes/x"],
)  # fmt: skip
def test_a_request_for_no_resource(path: str) -> None:
    assert parse_request_info("GET", path, {}) == NonResourceRequest(verb="get", path=path)
