"""A path of the proxy means one thing, or is refused."""

import pytest

from kairship.apiserver.proxy.target import Target, target_by_name, target_of
from kairship.kube.native_access import PREFIX, Way
from kairship.rpc.errors import InvalidArgument, NotFound


def test_an_instance_and_its_members_are_found() -> None:
    assert target_of(f"{PREFIX}demo/proxy/api/v1/pods") == Target(instance="demo", cluster=None, path="/api/v1/pods")
    assert target_of(f"{PREFIX}demo/proxy") == Target(instance="demo", cluster=None, path="/")
    member = target_of(f"{PREFIX}demo/clusters/oregon/proxy/version")
    assert member is not None
    assert member.upstream == "/apis/cluster.karmada.io/v1alpha1/clusters/oregon/proxy/version"


@pytest.mark.parametrize("path", ["", "demo", "demo/clusters/oregon", "demo/proxyx/api", "demo/x/proxy/api"])
def test_other_paths_are_others(path: str) -> None:
    assert target_of(PREFIX + path) is None
    assert target_of("/apis/kairship.io/v1alpha1/clusters") is None


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
        target_of(PREFIX + path)


ADDRESS = "127.0.0.1:8443"


@pytest.mark.parametrize("way", [Way("demo"), Way("a--b"), Way("demo", "oregon")])
def test_a_name_leads_where_the_path_leads(way: Way) -> None:
    assert way.host is not None
    by_path = target_of(f"{way.path}/api/v1/pods")
    assert by_path is not None
    for asked_for, host in ((way.host, ADDRESS), ("", f"{way.host}:8443"), (way.host.upper(), way.host)):
        assert target_by_name(asked_for, host, "/api/v1/pods") == by_path


def test_names_that_could_mean_two_things_are_not_there() -> None:
    assert Way("b--c", "a").host is None
    assert Way("demo", "a--b").host is None
    assert Way("i" * 40, "c" * 40).host is None
    for name in ("a--b--c.members.kairship.local", "a.members.kairship.local", "x.y.instances.kairship.local"):
        with pytest.raises(NotFound):
            target_by_name(name, ADDRESS, "/api")


def test_other_names_lead_nowhere() -> None:
    for name in ("", "localhost", "demo.example.org", "instances.kairship.local", "evilinstances.kairship.local"):
        assert target_by_name(name, ADDRESS, "/api") is None


def test_a_name_in_tls_and_another_in_http_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="different places"):
        target_by_name("east.instances.kairship.local", "west.instances.kairship.local", "/api")


@pytest.mark.parametrize("path", ["/api/../x", "/api/%2e%2e/x", "//api", "/a%2fb"])
def test_a_path_below_a_name_is_held_to_the_same(path: str) -> None:
    with pytest.raises(InvalidArgument):
        target_by_name("demo.instances.kairship.local", ADDRESS, path)


def test_no_name_leads_to_what_no_path_does() -> None:
    for name in ("-.instances.kairship.local", "de_mo.instances.kairship.local", "a..instances.kairship.local"):
        with pytest.raises((InvalidArgument, NotFound)):
            target_by_name(name, ADDRESS, "/api")
