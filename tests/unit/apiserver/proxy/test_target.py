"""A path of the proxy is unambiguous, or it is refused."""

import pytest

from kairship.apiserver.proxy.request.target import Target, target_of_host, target_of_path
from kairship.rpc.errors import InvalidArgument, NotFound
from kairship.rpc.native_access import PREFIX, NativeEndpoint


def test_an_instance_and_its_members_are_found() -> None:
    assert target_of_path(f"{PREFIX}demo/proxy/api/v1/pods") == Target(
        instance="demo", cluster=None, path="/api/v1/pods"
    )
    assert target_of_path(f"{PREFIX}demo/proxy") == Target(instance="demo", cluster=None, path="/")
    member = target_of_path(f"{PREFIX}demo/clusters/oregon/proxy/version")
    assert member is not None
    assert member.upstream_path == "/apis/cluster.karmada.io/v1alpha1/clusters/oregon/proxy/version"


@pytest.mark.parametrize("path", ["", "demo", "demo/clusters/oregon", "demo/proxyx/api", "demo/x/proxy/api"])
def test_other_paths_are_not_for_the_proxy(path: str) -> None:
    assert target_of_path(PREFIX + path) is None
    assert target_of_path("/apis/kairship.io/v1alpha1/clusters") is None


@pytest.mark.parametrize(
    "path",
    [
        "demo/proxy/api/../secrets",
        "demo/proxy/api/v1/%2e%2e/x",
        "demo/proxy/api/v1/%2E%2e/x",
        "demo/proxy/api/v1/./x",
        "demo/proxy/api/%252e%252e/x",
        "demo/proxy/api//v1",
        "demo/proxy//api/v1",
        "demo/proxy/api/v1%2fsecrets",
        "demo/proxy/api/v1/x%5c..%5cy",
        "demo/proxy/api/v1/x%00",
        "demo/proxy/api/v1/x%0d%0aHost:%20evil",
        "demo/proxy/api/v1/%ff",
        "demo/proxy/api/v1/na\u0455e",
        "demo/clusters/*/proxy/api",
        "demo/clusters/%2a/proxy/api",
        "demo/clusters/../proxy/api",
        "demo/clusters/a..b/proxy/api",
        "demo/clusters/%2e%2e/proxy/api",
        "DEMO/proxy/api",
        "..%2fdemo/proxy/api",
        "%64emo/proxy/api",
    ],
)
def test_what_could_mean_something_else_is_refused(path: str) -> None:
    with pytest.raises(InvalidArgument):
        target_of_path(PREFIX + path)


ADDRESS = "127.0.0.1:8443"


@pytest.mark.parametrize("way", [NativeEndpoint("demo"), NativeEndpoint("a--b"), NativeEndpoint("demo", "oregon")])
def test_a_host_name_leads_where_the_path_leads(way: NativeEndpoint) -> None:
    assert way.host is not None
    by_path = target_of_path(f"{way.path}/api/v1/pods")
    assert by_path is not None
    for server_name, host in ((way.host, ADDRESS), ("", f"{way.host}:8443"), (way.host.upper(), way.host)):
        assert target_of_host(server_name, host, "/api/v1/pods") == by_path


def test_ambiguous_host_names_do_not_exist() -> None:
    assert NativeEndpoint("b--c", "a").host is None
    assert NativeEndpoint("demo", "a--b").host is None
    assert NativeEndpoint("i" * 40, "c" * 40).host is None
    for name in ("a--b--c.members.kairship.local", "a.members.kairship.local", "x.y.instances.kairship.local"):
        with pytest.raises(NotFound):
            target_of_host(name, ADDRESS, "/api")


def test_other_host_names_are_not_for_the_proxy() -> None:
    for name in ("", "localhost", "demo.example.org", "instances.kairship.local", "evilinstances.kairship.local"):
        assert target_of_host(name, ADDRESS, "/api") is None


def test_different_names_in_tls_and_http_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="different places"):
        target_of_host("east.instances.kairship.local", "west.instances.kairship.local", "/api")


@pytest.mark.parametrize("path", ["/api/../x", "/api/%2e%2e/x", "//api", "/a%2fb"])
def test_a_path_behind_a_host_name_must_be_unambiguous_too(path: str) -> None:
    with pytest.raises(InvalidArgument):
        target_of_host("demo.instances.kairship.local", ADDRESS, path)


def test_a_host_name_must_name_a_valid_instance() -> None:
    for name in ("-.instances.kairship.local", "de_mo.instances.kairship.local", "a..instances.kairship.local"):
        with pytest.raises((InvalidArgument, NotFound)):
            target_of_host(name, ADDRESS, "/api")
