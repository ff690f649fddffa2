"""Every method declares its routes and the permission that it needs, consistently."""

import re

from protobuf import DescFieldValueScalar, ScalarType
from protobuf.wkt import FileDescriptorSet

from kairship.gen.kairship.api.v1.access_pb import Scope
from kairship.wire import Method, descriptors, methods

METHODS = list(methods().values())
VARIABLE = re.compile(r"\{(\w+)\}")

SERVICES = {
    "Instance", "Cluster", "Apps", "Batch", "Core", "Networking", "Policy", "Autoscaling", "Apiextensions",
    "Aggregation", "CloudShell", "Workspace", "Image", "Insight",
    "Clusters", "Nodes", "Search", "History", "Collector",
    "Sessions", "CurrentUser", "Rights", "Users", "Groups", "Roles", "Bindings", "Workspaces", "Folders", "Webhooks",
    "IdentityProviders", "Audits",
}  # fmt: skip


def name(method: Method) -> str:
    return f"{method.service}.{method.name}"


def product(method: Method) -> str:
    """The owner of a method, by its package."""
    own = re.match(r"/kairship\.(kpanda|ghippo)\.", method.path)
    return own[1] if own else "kairship"


def test_all_services_are_there() -> None:
    assert {method.service for method in METHODS} == SERVICES


def test_each_has_a_route_whose_variables_are_strings_of_the_request() -> None:
    for method in METHODS:
        (route,) = method.routes
        assert route.verb in {"GET", "POST", "PUT", "PATCH", "DELETE"}, name(method)
        assert route.template.startswith(f"/apis/{product(method)}.io/v1alpha1/"), name(method)
        assert route.body in {"", "*"}, name(method)
        strings = {
            field.name
            for field in method.request.desc().fields
            if isinstance(field.value, DescFieldValueScalar) and field.value.scalar is ScalarType.STRING
        }
        assert set(VARIABLE.findall(route.template)) <= strings, name(method)


def test_each_has_a_permission_and_a_scope() -> None:
    for method in METHODS:
        assert re.fullmatch(r"(kairship|kpanda|ghippo)\.[a-z]+\.[a-z]+", method.permission), name(method)
        assert method.scope is not Scope.UNSPECIFIED, name(method)


def test_nothing_but_signing_in_is_open_to_anybody() -> None:
    assert {name(method) for method in METHODS if method.scope is Scope.ANYBODY} == {
        "Sessions.Login", "Sessions.GetLoginOptions", "Sessions.BeginProviderLogin", "Sessions.FinishProviderLogin",
        "Sessions.RefreshToken", "Sessions.BeginDeviceLogin", "Sessions.FinishDeviceLogin",
    }  # fmt: skip


def test_a_path_within_a_workspace_is_authorised_there_or_on_the_platform() -> None:
    for method in METHODS:
        workspace = re.search(r"/workspaces/\{(\w+)\}", method.routes[0].template)
        if method.scope is Scope.WORKSPACE:
            assert workspace is not None, name(method)
            assert method.workspace == workspace[1], name(method)
        elif workspace is not None:
            assert method.scope is Scope.PLATFORM, name(method)


def test_permissions_to_read_are_for_reading_only() -> None:
    for method in METHODS:
        reads = method.permission.rpartition(".")[2] in {"get", "reveal"}
        assert reads == (method.routes[0].verb == "GET"), name(method)


def test_a_path_within_an_instance_or_a_namespace_is_authorised_there() -> None:
    """The authoriser must check the instance that the path names, or a permission on one would open another."""
    for method in METHODS:
        path = method.routes[0].template
        instance = re.search(r"/instances/\{(\w+)\}", path)
        assert method.instance == (instance[1] if instance else None), name(method)
        namespace = re.search(r"/namespaces/\{(\w+)\}", path)
        if method.name in {"UpdateNamespace", "PatchNamespace", "DeleteNamespace"}:
            assert method.namespace is None  # it changes the instance itself: permissions within it are not enough
        else:
            assert method.namespace == (namespace[1] if namespace else None), name(method)


def test_only_reads_of_more_than_one_place_are_filtered() -> None:
    for method in METHODS:
        if method.filtered:
            assert method.permission.endswith(".get"), name(method)
            assert method.scope is not Scope.NAMESPACE, name(method)


def test_streams_are_ours_and_strict() -> None:
    streams = {method.name for method in METHODS if method.streams}
    watches = {"WatchInstances", "WatchJoinedClusters", "WatchDeployments", "WatchJobs", "WatchCronJobs"}
    assert streams == watches | {"WatchClusters", "WatchObjects", "ExportAudits"}
    assert streams <= {method.name for method in METHODS if method.strict}


def test_no_two_methods_share_a_route() -> None:
    routes = [(route.verb, VARIABLE.sub("{}", route.template)) for method in METHODS for route in method.routes]
    assert len(set(routes)) == len(routes) == len(METHODS)


def test_values_of_secrets_need_a_permission_of_their_own() -> None:
    assert {method.name for method in METHODS if method.permission == "kairship.secrets.reveal"} == {
        "GetSecret",
        "GetSecretJSON",
    }


def test_what_belongs_to_platform_administrators_is_a_permission_of_its_own() -> None:
    """Instance administrators can edit an instance, but not create or delete one."""
    of = {name(method): method.permission for method in METHODS}
    assert of["Instance.CreateInstance"] == of["Instance.AdoptInstance"] == "kairship.instances.create"
    assert of["Instance.DeleteInstance"] == "kairship.instances.delete"
    assert (
        sum(permission in {"kairship.instances.create", "kairship.instances.delete"} for permission in of.values()) == 3
    )


def test_the_descriptors_have_every_method_and_all_that_they_import() -> None:
    found = FileDescriptorSet.from_binary(descriptors())
    packages = {(file.package, service.name): service for file in found.file for service in file.service}
    for method in METHODS:
        _, full, rpc = method.path.split("/")
        package, _, service = full.rpartition(".")
        assert rpc in {m.name for m in packages[package, service].method}
    names = {file.name for file in found.file}
    assert all(set(file.dependency) <= names for file in found.file)
