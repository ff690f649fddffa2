"""The table of permissions is complete: it has every permission that methods, rules and roles name."""

import itertools

import msgspec
import pytest

from kairship.access import (
    AnyRight,
    Attributes,
    Role,
    permission_for,
    permission_for_non_resource_path,
    permission_to_search,
    permissions,
    permissions_of,
)
from kairship.access.catalogue.products import products
from kairship.gen.kairship.api.v1.access_pb import Scope
from kairship.resources.product import ProductSpec
from kairship.wire import methods


def test_every_method_needs_a_permission_of_the_table() -> None:
    needed = {method.permission for method in methods().values() if method.scope is not Scope.ANYBODY}
    assert needed <= set(permissions())


def test_methods_on_the_own_account_need_a_permission_that_every_user_has() -> None:
    for method in methods().values():
        if method.scope is not Scope.ANYBODY:
            assert (method.scope is Scope.SELF) == (permissions()[method.permission].role is None), method.path


def test_every_write_is_refused_at_once_when_bindings_are_old() -> None:
    for method in methods().values():
        if method.scope is not Scope.ANYBODY and method.routes[0].verb != "GET":
            assert permissions()[method.permission].delicate, method.path
    assert permissions()["kairship.secrets.reveal"].delicate
    assert permissions()["kairship.works.get"].delicate
    assert permissions()["kairship.pods.logs"].delicate
    assert permissions()["kairship.pods.exec"].delicate


def test_each_role_has_all_of_the_one_before_it() -> None:
    for lesser, greater in itertools.pairwise(Role):
        assert permissions_of(lesser) < permissions_of(greater)


@pytest.mark.parametrize(
    ("permission", "least"),
    [
        ("kairship.instances.create", Role.PLATFORM_ADMIN),
        ("kairship.instances.delete", Role.PLATFORM_ADMIN),
        ("kairship.instances.update", Role.ADMIN),
        ("kairship.clusters.join", Role.ADMIN),
        ("kairship.kubeconfigs.create", Role.ADMIN),
        ("kairship.cloudshells.create", Role.ADMIN),
        ("kpanda.clusters.create", Role.PLATFORM_ADMIN),
        ("kpanda.clusters.delete", Role.PLATFORM_ADMIN),
        ("kpanda.kubeconfigs.create", Role.PLATFORM_ADMIN),
        ("kpanda.nodes.update", Role.PLATFORM_ADMIN),
        ("kpanda.clusters.get", Role.VIEWER),
        ("kpanda.clusters.attach", Role.ADMIN),
        ("kairship.systemnamespaces.use", Role.ADMIN),
        ("kairship.membercredentials.use", Role.PLATFORM_ADMIN),
        ("kpanda.collector.get", Role.ADMIN),
        ("kpanda.nodes.get", Role.VIEWER),
        ("kpanda.search.get", Role.VIEWER),
        ("kpanda.history.get", Role.VIEWER),
        ("kairship.deployments.create", Role.EDITOR),
        ("kairship.propagationpolicies.delete", Role.EDITOR),
        ("kairship.deployments.promote", Role.EDITOR),
        ("kairship.secrets.reveal", Role.EDITOR),
        ("kairship.secrets.get", Role.VIEWER),
        ("kairship.deployments.get", Role.VIEWER),
        ("kairship.customresourcedefinitions.update", Role.ADMIN),
        ("kairship.resourcequotas.delete", Role.ADMIN),
        ("kairship.federatedresourcequotas.create", Role.ADMIN),
        ("kairship.roles.update", Role.ADMIN),
        ("kairship.clusterroles.propagate", Role.PLATFORM_ADMIN),
        ("kairship.works.get", Role.PLATFORM_ADMIN),
        ("kairship.resourceinterpretercustomizations.update", Role.PLATFORM_ADMIN),
    ],
)
def test_the_roles_are_those_of_the_specification(permission: str, least: Role) -> None:
    assert permissions()[permission].role is least


def test_no_rule_has_a_wildcard_and_none_reaches_what_gives_rights_away() -> None:
    """`*` in RBAC matches subresources, `clusters/proxy` among them."""
    forbidden = {"certificatesigningrequests", "tokenreviews", "subjectaccessreviews"}
    for permission in permissions().values():
        for rule in permission.rules:
            assert "*" not in (rule.group, rule.resource, *rule.verbs)
            assert rule.resource.partition("/")[0] not in forbidden
            assert not {"impersonate", "escalate", "bind"} & set(rule.verbs)
            assert rule.names_clusters == (rule.resource == "clusters/proxy")


def test_markers_come_with_the_right_to_write_and_some_with_more() -> None:
    guarded = {
        "propagate": {"clusterroles", "clusterrolebindings", "apiservices"}
        | {"validatingwebhookconfigurations", "mutatingwebhookconfigurations"},
    }
    guarded["override"] = guarded["propagate"] | {"roles", "rolebindings"}
    for action, marker in (("create", "propagate"), ("update", "override")):
        for permission in permissions().values():
            for rule in permission.rules:
                if marker in rule.verbs:
                    assert permission.role is not None
                    assert permission.action == (marker if rule.resource in guarded[marker] else action)
                    assert "/" not in rule.resource
                elif action in rule.verbs and "/" not in rule.resource:
                    name = f"kairship.{rule.resource}"
                    held = permissions().get(f"{name}.{marker}") or permissions()[f"{name}.{action}"]
                    assert any(
                        marker in each.verbs and each.resource == rule.resource and each.group == rule.group
                        for each in held.rules
                    ), rule
            assert (action in permission.custom) == (marker in permission.custom)
    for plural in guarded["override"]:
        assert permissions()[f"kairship.{plural}.override"].role is Role.PLATFORM_ADMIN


def test_kinds_with_secrets_are_not_searched() -> None:
    assert permission_to_search("work.karmada.io", "works") is None
    assert permission_to_search("", "secrets") == "kairship.secrets.get"
    assert permission_to_search("rbac.authorization.k8s.io", "roles") == "kairship.roles.get"


def attributes(request: str) -> Attributes:
    verb, path = request.split()
    group, _, resource = path.rpartition(":")
    resource, _, part = resource.partition("/")
    return Attributes(verb=verb, group=group, resource=resource, subresource=part, namespace="shop")


@pytest.mark.parametrize(
    ("request_", "permission"),
    [
        ("get apps:deployments", "kairship.deployments.get"),
        ("watch apps:deployments", "kairship.deployments.get"),
        ("patch apps:deployments", "kairship.deployments.update"),
        ("patch apps:deployments/scale", "kairship.deployments.update"),
        ("get apps:deployments/status", "kairship.deployments.get"),
        ("update apps:deployments/status", None),
        ("deletecollection apps:deployments", "kairship.deployments.delete"),
        ("list :secrets", "kairship.secrets.reveal"),
        ("get :pods/log", "kairship.pods.logs"),
        ("create :pods/exec", "kairship.pods.exec"),
        ("get :pods/exec", "kairship.pods.exec"),
        ("create :pods/eviction", "kairship.pods.evict"),
        ("create :pods/binding", None),
        ("create :serviceaccounts/token", None),
        ("get cluster.karmada.io:clusters", "kairship.clusters.get"),
        ("get cluster.karmada.io:clusters/proxy", None),
        ("delete cluster.karmada.io:clusters", None),
        ("get work.karmada.io:works", "kairship.works.get"),
        ("update work.karmada.io:works", None),
        ("propagate apps:deployments", None),
        ("override example.com:widgets", None),
        ("patch :resourcequotas", "kairship.resourcequotas.update"),
        ("list events.k8s.io:events", "kairship.events.get"),
        ("list metrics.k8s.io:pods", "kairship.metrics.get"),
        ("list custom.metrics.k8s.io:pods", None),
        ("update flowcontrol.apiserver.k8s.io:flowschemas", None),
        ("delete admissionregistration.k8s.io:validatingadmissionpolicies", None),
        ("list work.karmada.io:resourcebindings", "kairship.resourcebindings.get"),
        ("create rbac.authorization.k8s.io:clusterrolebindings", "kairship.clusterrolebindings.create"),
        ("escalate rbac.authorization.k8s.io:clusterroles", None),
        ("bind rbac.authorization.k8s.io:roles", None),
        ("impersonate :users", None),
        ("get example.com:widgets", "kairship.customresources.get"),
        ("update example.com:widgets/status", None),
        ("create example.com:widgets/exec", None),
        ("get gateway.networking.k8s.io:gateways", "kairship.customresources.get"),
        ("get unknown:things", None),
        ("create authorization.k8s.io:selfsubjectaccessreviews", AnyRight.ON_INSTANCE),
        ("create authorization.k8s.io:subjectaccessreviews", None),
        ("create authentication.k8s.io:tokenreviews", None),
    ],
)
def test_requests_of_kubernetes_need(request_: str, permission: str | AnyRight | None) -> None:
    assert permission_for(attributes(request_)) == permission


@pytest.mark.parametrize(
    ("verb", "path", "open_"),
    [
        ("get", "/version", True),
        ("get", "/apis/apps/v1", True),
        ("get", "/openapi/v3/apis/apps/v1", True),
        ("get", "/openapi/v3/.well-known/openid-configuration", True),
        ("get", "/api", True),
        ("get", "/apis/", True),
        ("get", "/api/v1/watch", False),
        ("get", "/api/v1/watch/configmaps", False),
        ("get", "/api/v1/watch/namespaces/kube-system/configmaps", False),
        ("get", "/apis/apps/v1/watch/deployments", False),
        ("get", "/api/v1/proxy/namespaces/web/services/a", False),
        ("post", "/apis", False),
        ("get", "/metrics", False),
        ("get", "/logs", False),
        ("get", "/debug/pprof", False),
        ("get", "/apisx", False),
    ],
)
def test_paths_that_are_about_no_resource(verb: str, path: str, open_: bool) -> None:
    assert (permission_for_non_resource_path(verb, path) is AnyRight.ON_INSTANCE) == open_


def test_the_catalogue_fits_the_custom_resource_and_has_every_permission() -> None:
    found = set()
    for name, spec in products().items():
        msgspec.convert(msgspec.to_builtins(spec), ProductSpec)  # with the bounds that the API server applies
        found |= {f"{name}.{each.name}.{action.name}" for each in spec.resource_types for action in each.actions}
    assert found == {name for name, permission in permissions().items() if permission.role is not None}
