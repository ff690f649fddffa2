"""The first line of a request means the same, whether it was parsed before or not."""

import pytest

from kairship.apiserver.proxy.request.request_info import ResourceRequest
from kairship.apiserver.proxy.request.request_line import RequestLine, parse_request_line
from kairship.rpc.errors import InvalidArgument

PATH = "/apis/kairship.io/v1alpha1/instances/demo/proxy"
HERE = "plane.example:8443"


def parse(address: str, *, method: str = "GET", server_name: str = "", host: str = HERE) -> RequestLine | None:
    return parse_request_line(method, address, server_name=server_name, host=host)


def test_a_line_is_parsed_once() -> None:
    first = parse(f"{PATH}/api/v1/namespaces/shop/pods?limit=5")
    assert first is not None
    assert parse(f"{PATH}/api/v1/namespaces/shop/pods?limit=5") is first
    assert (first.verb, first.query, first.parameters) == ("list", "limit=5", {"limit": "5"})


def test_method_and_host_names_are_part_of_the_cache_key() -> None:
    address = f"{PATH}/api/v1/namespaces/shop/pods/web"
    verbs = [line.verb for method in ("GET", "DELETE") if (line := parse(address, method=method)) is not None]
    assert verbs == ["get", "delete"]
    by_name = [parse("/api/v1/nodes", server_name=f"{name}.instances.kairship.local") for name in ("east", "west")]
    assert [line.target.instance for line in by_name if line is not None] == ["east", "west"]
    assert parse("/api/v1/nodes") is None


def test_a_long_line_is_not_cached() -> None:
    address = f"{PATH}/api/v1/pods?labelSelector={'a' * 2000}"
    first, second = parse(address), parse(address)
    assert first == second
    assert first is not second


def test_an_unsafe_line_is_refused_every_time() -> None:
    for _ in range(2):
        with pytest.raises(InvalidArgument):
            parse(f"{PATH}/api/v1/%2e%2e/secrets")
        with pytest.raises(InvalidArgument):
            parse(f"{PATH}/api/v1/pods?token=secret")


@pytest.mark.parametrize(
    ("method", "below", "is_long_running", "is_unpaged", "needs_current_rights"),
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
def test_the_line_says_how_a_request_is_served(
    method: str, below: str, *, is_long_running: bool, is_unpaged: bool, needs_current_rights: bool
) -> None:
    line = parse(PATH + below, method=method)
    assert line is not None
    assert (line.is_long_running, line.is_unpaged, line.needs_current_rights) == (
        is_long_running,
        is_unpaged,
        needs_current_rights,
    )


def test_of_several_values_the_first_counts() -> None:
    line = parse(f"{PATH}/api/v1/pods?limit=1&limit=2")
    assert line is not None
    assert line.has_repeated_parameters
    assert line.parameters == {"limit": "1"}
    assert isinstance(line.request_info, ResourceRequest)


@pytest.mark.parametrize(
    "query", ["watch=1;limit=5", "limit=5;watch=1", "watch=%zz", "watch=%", "limit=5&labelSelector=%3"]
)
def test_a_query_that_servers_read_in_different_ways_is_refused(query: str) -> None:
    with pytest.raises(InvalidArgument, match="semicolon"):
        parse(f"{PATH}/api/v1/pods?{query}")
    assert parse(f"{PATH}/api/v1/pods?labelSelector=a%3Bb%25") is not None
