"""Tables as API servers print them: content negotiation, ages, JSON paths of columns, and the status of a pod."""

from typing import Any

import msgspec
import pytest

from kairship.index.negotiation import Format, negotiate
from kairship.index.tables import built_in, of_definition
from kairship.index.tables.ages import human
from kairship.index.tables.json_path import UnknownPathError, parse
from kairship.index.tables.pods import COLUMNS

AS = "application/json;as={};v=v1;g=meta.k8s.io"
PROTOBUF = "application/vnd.kubernetes.protobuf"


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", Format.PLAIN),
        ("*/*", Format.PLAIN),
        ("application/json", Format.PLAIN),
        ("application/json, */*", Format.PLAIN),
        ("text/html,application/json;q=0.9", Format.PLAIN),
        ("application/json;stream=watch", Format.PLAIN),
        (f"{AS.format('Table')},application/json", Format.TABLE),
        (f"application/json;q=0.5,{AS.format('Table')}", Format.TABLE),
        (AS.format("PartialObjectMetadata"), Format.METADATA),
        (AS.format("PartialObjectMetadataList"), Format.METADATA_LIST),
        (f"{PROTOBUF},application/json", None),
        (f"{PROTOBUF};as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json", None),
        ("application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json", None),
        ("application/json;as=Nonsense;v=v1;g=meta.k8s.io", None),
        ("application/json;pretty=1", None),
        ("application/yaml", None),
        ("text/html", None),
    ],
)
def test_the_first_form_that_a_server_has_is_the_one(accept: str, form: Format | None) -> None:
    assert negotiate(accept) is form


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-2, "<invalid>"),
        (-1.5, "0s"),
        (0, "0s"),
        (119.9, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (599, "9m59s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (8 * 3600, "8h"),
        (48 * 3600 - 1, "47h"),
        (48 * 3600, "2d"),
        (50 * 3600, "2d2h"),
        (8 * 86400, "8d"),
        (729 * 86400, "729d"),
        (730 * 86400, "2y"),
        (731 * 86400, "2y1d"),
        (8 * 365 * 86400, "8y"),
    ],
)
def test_ages_are_in_two_units_at_most(seconds: float, text: str) -> None:
    assert human(seconds) == text


OBJECT = {
    "metadata": {"annotations": {"a.b/c": "dotted"}},
    "spec": {"list": [{"type": "A", "n": 1}, {"type": "B", "n": 2}], "deep": {"x": None}},
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.list[0].n", [1]),
        (".spec.list[-1].n", [2]),
        (".spec.list[5].n", []),
        (".spec.list[*].n", [1, 2]),
        ('.spec.list[?(@.type=="B")].n', [2]),
        (".spec.list[?(@.type=='C')].n", []),
        (".spec.list[?(@.n==2)].type", ["B"]),
        (r".metadata.annotations.a\.b/c", ["dotted"]),
        (".metadata.annotations['a.b/c']", ["dotted"]),
        (".spec.deep.x", [None]),
        (".spec.deep.x.y", []),
        (".no.such.thing", []),
    ],
)
def test_paths_lead_to_values(path: str, found: list[Any]) -> None:
    assert parse(path)(OBJECT) == found


@pytest.mark.parametrize("path", ["..spec", ".a[1:2]", ".a[?(@.b>1)]", "spec", ".a[?(@.b)]", ".a|.b"])
def test_paths_that_say_more_are_left_to_the_cluster(path: str) -> None:
    with pytest.raises(UnknownPathError):
        parse(path)


def test_cells_of_a_custom_resource_have_the_types_of_their_columns() -> None:
    columns = [
        {"name": kind, "type": kind, "jsonPath": f".{field}"}
        for kind, field in [("integer", "n"), ("number", "f"), ("boolean", "b"), ("string", "o"), ("date", "t")]
    ]
    columns += [
        {"name": "wrong", "type": "integer", "jsonPath": ".o"},
        {"name": "x", "type": "string", "jsonPath": ".x"},
    ]
    definition = {"spec": {"versions": [{"name": "v1", "additionalPrinterColumns": columns}]}}
    layout = of_definition(msgspec.json.encode(definition), "v1")
    assert layout is not None
    obj = {"metadata": {"name": "a"}, "n": 1.9, "f": 2, "b": True, "o": {"b": "<", "a": [1]}, "t": "tomorrow"}
    cells = layout.printed(msgspec.json.encode(obj)).cells
    assert cells == ["a", 1, 2, True, '{"a":[1],"b":"\\u003c"}', "<invalid>", None, None]
    assert of_definition(msgspec.json.encode(definition), "v2") is None


def running(name: str = "a", *, ready: bool = True, restarts: int = 0) -> dict[str, Any]:
    return {"name": name, "ready": ready, "restartCount": restarts, "state": {"running": {}}}


def ended(reason: str = "", code: int = 0, name: str = "a") -> dict[str, Any]:
    return {"name": name, "restartCount": 0, "state": {"terminated": {"reason": reason, "exitCode": code}}}


def waiting(reason: str) -> dict[str, Any]:
    return {"name": "a", "restartCount": 3, "state": {"waiting": {"reason": reason}}}


@pytest.mark.parametrize(
    ("spec", "status", "cells"),
    [
        ({}, {"phase": "Pending"}, ["0/1", "Pending", "0"]),
        ({}, {"phase": "Running", "containerStatuses": [running()]}, ["1/1", "Running", "0"]),
        ({}, {"phase": "Running", "containerStatuses": [running(ready=False)]}, ["0/1", "Running", "0"]),
        (
            {},
            {"phase": "Running", "containerStatuses": [waiting("ErrImagePull")]},
            ["0/1", "ErrImagePull", "3"],
        ),
        ({}, {"phase": "Succeeded", "containerStatuses": [ended("Completed")]}, ["0/1", "Completed", "0"]),
        ({}, {"phase": "Failed", "containerStatuses": [ended(code=3)]}, ["0/1", "ExitCode:3", "0"]),
        ({}, {"phase": "Failed", "reason": "Evicted"}, ["0/1", "Evicted", "0"]),
        (
            {},
            {"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]},
            ["0/1", "SchedulingGated", "0"],
        ),
        (
            {"initContainers": [{"name": "i"}, {"name": "j"}]},
            {"phase": "Pending", "initContainerStatuses": [ended(name="i"), running("j")]},
            ["0/1", "Init:1/2", "0"],
        ),
        (
            {"initContainers": [{"name": "i"}]},
            {"phase": "Pending", "initContainerStatuses": [ended("Error", 1, "i")]},
            ["0/1", "Init:Error", "0"],
        ),
        (
            {"initContainers": [{"name": "side", "restartPolicy": "Always"}]},
            {
                "phase": "Running",
                "initContainerStatuses": [{**running("side", restarts=2), "started": True}],
                "containerStatuses": [running(restarts=1)],
            },
            ["2/2", "Running", "3"],
        ),
    ],
)
def test_the_state_of_a_pod_is_told_from_its_containers(spec: Any, status: Any, cells: list[str]) -> None:
    layout = built_in("pods", msgspec.json.encode([{"name": name} for name in COLUMNS]))
    assert layout is not None
    body = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a"}], **spec}, "status": status}
    printed = layout.printed(msgspec.json.encode(body))
    assert printed.cells[:4] == ["p", *cells]
    assert bool(printed.conditions) is (status["phase"] in {"Succeeded", "Failed"})


def test_columns_that_are_not_known_are_not_printed() -> None:
    assert built_in("pods", b'[{"name":"Name"},{"name":"Mood"}]') is None
    assert built_in("no-such-kind", b'[{"name":"Name"},{"name":"Age"}]') is None
    plainest = built_in("no-such-kind", b'[{"name":"Name"},{"name":"Created At"}]')
    assert plainest is not None
    body = b'{"metadata":{"name":"x","creationTimestamp":"2026-01-02T03:04:05Z"}}'
    assert plainest.printed(body).cells == ["x", "2026-01-02T03:04:05Z"]
