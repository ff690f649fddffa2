"""A path of the proxy means one thing, or is refused."""

import pytest

from kairship.apiserver.proxy.target import PREFIX, Target, target_of
from kairship.rpc.errors import InvalidArgument


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
