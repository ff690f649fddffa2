"""Which method a verb and a path mean."""

import dataclasses

import pytest
from support.entrance import BASE, METHODS

from kairship.apiserver.http.routing import Match, Mismatch, Router
from kairship.rpc.errors import InvalidArgument
from kairship.wire import Route, methods

ROUTER = Router(methods().values())


@pytest.mark.parametrize(
    ("verb", "path", "method", "values"),
    [
        ("GET", "/instances", "ListInstances", ()),
        ("GET", "/instances/demo", "GetInstance", ("demo",)),
        ("GET", "/instances/config", "GetInstanceKarmadaConfig", ()),
        ("PUT", "/instances/config", "UpdateInstance", ("config",)),
        ("GET", "/instances/config/json", "GetInstanceJSON", ("config",)),
        ("GET", "/instances:watch", "WatchInstances", ()),
        ("GET", "/instances/a:watch", "GetInstance", ("a:watch",)),
        ("POST", "/instances/a/namespaces/b/deployments/c:restart", "RestartDeployment", ("a", "b", "c")),
        ("POST", "/instances/a/namespaces/b/deployments/c%3Ad:restart", "RestartDeployment", ("a", "b", "c:d")),
        ("GET", "/instances/a%2Fb", "GetInstance", ("a/b",)),
        ("GET", "/instances/%C3%A9", "GetInstance", ("é",)),
        ("GET", "/%69nstances", "ListInstances", ()),
    ],
)
def test_a_path_leads_to_its_method(verb: str, path: str, method: str, values: tuple[str, ...]) -> None:
    found = ROUTER.find(verb, BASE + path)
    assert isinstance(found, Match)
    assert (found.method.name, found.values) == (method, values)


@pytest.mark.parametrize(
    ("verb", "path", "allowed"),
    [
        ("GET", "/", ()),
        ("GET", "", ()),
        ("GET", f"{BASE}/instances/", ()),
        ("GET", f"{BASE}//instances", ()),
        ("GET", f"/..{BASE}/instances", ()),
        ("GET", f"{BASE}/instances%3Awatch", ()),
        ("POST", f"{BASE}/instances:watch", ("GET",)),
        ("PATCH", f"{BASE}/instances/demo", ("DELETE", "GET", "PUT")),
    ],
)
def test_a_mismatch_names_the_verbs_of_the_path(verb: str, path: str, allowed: tuple[str, ...]) -> None:
    assert ROUTER.find(verb, path) == Mismatch(allowed)


def test_a_path_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="UTF-8"):
        ROUTER.find("GET", f"{BASE}/instances/%ff")


def test_every_route_of_the_protos_is_found() -> None:
    count = 0
    for method in methods().values():
        for route in method.routes:
            segments = [("value" if s.startswith("{") else s) for s in route.template.split("/")]
            action = route.template.partition("}:")[2]
            if action:
                segments[-1] = f"value:{action}"
            found = ROUTER.find(route.verb, "/".join(segments))
            assert isinstance(found, Match), route
            assert found.method.path == method.path
            count += 1
    assert count >= 178


@pytest.mark.parametrize(
    ("template", "body", "complaint"),
    [
        ("/x/{nothing}", "", "no field nothing"),
        ("/x/{name=a/*}", "", "not supported"),
        ("/x/{name}", "name", "no message name"),
    ],
)
def test_a_route_that_cannot_work_is_refused_at_the_start(template: str, body: str, complaint: str) -> None:
    route = Route(verb="GET", template=template, body=body)
    with pytest.raises(ValueError, match=complaint):
        Router([dataclasses.replace(METHODS["Instance.GetInstance"], routes=(route,))])


def test_two_methods_with_one_path_are_refused() -> None:
    method = METHODS["Instance.GetInstance"]
    with pytest.raises(ValueError, match="is already"):
        Router([method, method])
