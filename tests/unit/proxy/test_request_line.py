"""What the first line of a request means, whether it was read before or not."""

import pytest

from kairship.apiserver.proxy.asking import Asked
from kairship.apiserver.proxy.request_line import RequestLine, line_of
from kairship.rpc.errors import InvalidArgument

PATH = "/apis/kairship.io/v1alpha1/instances/demo/proxy"
HERE = "plane.example:8443"


def read(address: str, *, method: str = "GET", asked_for: str = "", host: str = HERE) -> RequestLine | None:
    return line_of(method, address, asked_for=asked_for, host=host)


def test_the_same_line_is_read_once() -> None:
    first = read(f"{PATH}/api/v1/namespaces/shop/pods?limit=5")
    assert first is not None
    assert read(f"{PATH}/api/v1/namespaces/shop/pods?limit=5") is first
    assert (first.verb, first.query, first.parameters) == ("list", "limit=5", {"limit": "5"})


def test_method_and_names_are_a_part_of_what_it_means() -> None:
    address = f"{PATH}/api/v1/namespaces/shop/pods/web"
    verbs = [line.verb for method in ("GET", "DELETE") if (line := read(address, method=method)) is not None]
    assert verbs == ["get", "delete"]
    by_name = [read("/api/v1/nodes", asked_for=f"{name}.instances.kairship.local") for name in ("east", "west")]
    assert [line.target.instance for line in by_name if line is not None] == ["east", "west"]
    assert read("/api/v1/nodes") is None


def test_a_long_line_is_read_and_not_kept() -> None:
    address = f"{PATH}/api/v1/pods?labelSelector={'a' * 2000}"
    first, second = read(address), read(address)
    assert first == second
    assert first is not second


def test_what_nobody_should_follow_is_refused_every_time() -> None:
    for _ in range(2):
        with pytest.raises(InvalidArgument):
            read(f"{PATH}/api/v1/%2e%2e/secrets")
        with pytest.raises(InvalidArgument):
            read(f"{PATH}/api/v1/pods?token=secret")


@pytest.mark.parametrize(
    ("method", "below", "lasts", "is_wide", "is_delicate"),
    [
        ("GET", "/api/v1/pods", False, True, False),
        ("GET", "/api/v1/pods?limit=500", False, False, False),
        ("GET", "/api/v1/pods?watch=true", True, False, False),
        ("GET", "/api/v1/namespaces/a/pods/b/log", False, False, True),
        ("GET", "/api/v1/namespaces/a/pods/b/log?follow=1", True, False, True),
        ("GET", "/api/v1/namespaces/a/secrets/b", False, False, True),
        ("DELETE", "/api/v1/namespaces/a/pods", False, True, True),
        ("PATCH", "/apis/apps/v1/namespaces/a/deployments/b", False, False, True),
        ("GET", "/version", False, False, False),
    ],
)
def test_what_follows_from_it(method: str, below: str, *, lasts: bool, is_wide: bool, is_delicate: bool) -> None:
    line = read(PATH + below, method=method)
    assert line is not None
    assert (line.lasts, line.is_wide, line.is_delicate) == (lasts, is_wide, is_delicate)


def test_of_several_values_the_first_counts() -> None:
    line = read(f"{PATH}/api/v1/pods?limit=1&limit=2")
    assert line is not None
    assert line.repeats
    assert line.parameters == {"limit": "1"}
    assert isinstance(line.asked, Asked)
