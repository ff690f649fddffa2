"""A REST request becomes the message that the method takes."""

import threading
import time
from contextlib import nullcontext
from itertools import pairwise

import pytest
from support.entrance import METHODS

from kairship.apiserver.http.transcoding import MOST_PARAMETERS, MOST_VALUES, Transcoder
from kairship.gen.kairship.cluster.v1alpha1.cluster_pb import Cluster, ClusterProvider, ClusterSpec
from kairship.gen.kairship.cluster.v1alpha1.membership_pb import (
    JoinClusterRequest,
    RemoveJoinedClusterRequest,
    UpdateJoinedClusterRequest,
)
from kairship.gen.kairship.core.v1alpha1.event_pb import EventType, ListEventsRequest
from kairship.gen.kairship.instance.v1alpha1.instance_pb import ListInstancesRequest
from kairship.gen.kairship.types.v1alpha1.list_pb import SortBy, SortDir
from kairship.gen.kairship.types.v1alpha1.metadata_pb import ObjectMeta
from kairship.rpc.errors import InvalidArgument
from kairship.wire import Route

LIST = METHODS["Instance.ListInstances"]
JOIN = METHODS["Cluster.JoinCluster"]
REMOVE = METHODS["Cluster.RemoveJoinedCluster"]


def of(name: str, *variables: str, body: str | None = None) -> Transcoder:
    method = METHODS[name]
    route = method.routes[0]
    if body is not None:
        route = Route(verb="POST", template="/made/up", body=body)
    return Transcoder(method, route, variables)


@pytest.mark.parametrize(
    "query", ["pageSize=5&page=2&sortBy=field_name&sortDir=asc", "page_size=5&page=2&sort_by=1&sort_dir=1"]
)
def test_fields_go_by_both_of_their_names_and_enums_by_name_or_number(query: str) -> None:
    message, ignored = of("Instance.ListInstances").read((), query, b"")
    assert message == ListInstancesRequest(page=2, page_size=5, sort_by=SortBy.field_name, sort_dir=SortDir.asc)
    assert not ignored


def test_a_repeated_parameter_is_a_list() -> None:
    message, _ = of("Core.ListEvents", "instance").read(("demo",), "type=Normal&type=Warning", b"")
    assert message == ListEventsRequest(instance="demo", type=[EventType.Normal, EventType.Warning])


def test_parameters_reach_into_messages_and_maps() -> None:
    query = "cluster.metadata.labels[a.b/c]=x&cluster.metadata.labels[d]=y&cluster.spec.provider=AWS_EKS"
    message, ignored = of("Cluster.RemoveJoinedCluster", "instance", "name").read(("demo", "oregon"), query, b"")
    metadata = ObjectMeta(labels={"a.b/c": "x", "d": "y"})
    assert message == RemoveJoinedClusterRequest(
        instance="demo",
        name="oregon",
        cluster=Cluster(metadata=metadata, spec=ClusterSpec(provider=ClusterProvider.AWS_EKS)),
    )
    assert not ignored


def test_a_variable_reaches_into_a_message() -> None:
    message, _ = of("Cluster.JoinCluster", "cluster.metadata.name", body="*").read(("oregon",), "", b"{}")
    assert message == JoinClusterRequest(cluster=Cluster(metadata=ObjectMeta(name="oregon")))


def test_a_body_can_be_one_field_and_the_query_the_others() -> None:
    transcoder = of("Cluster.UpdateJoinedCluster", "instance", body="cluster")
    message, ignored = transcoder.read(("demo",), "name=oregon", b'{"metadata": {"name": "x"}, "no": 1}')
    assert message == UpdateJoinedClusterRequest(
        instance="demo", name="oregon", cluster=Cluster(metadata=ObjectMeta(name="x"))
    )
    assert list(ignored) == ["no"]


def test_the_path_wins_over_the_body() -> None:
    message, _ = of("Instance.UpdateInstance", "name").read(("mine",), "", b'{"name": "theirs", "data": "x"}')
    assert (message.name, message.data) == ("mine", "x")  # type: ignore[attr-defined]


def test_no_body_is_an_empty_one() -> None:
    message, _ = of("Instance.CreateInstance").read((), "", b" \n")
    assert message == METHODS["Instance.CreateInstance"].request()


def test_methods_of_the_contract_ignore_and_report_unknown_fields() -> None:
    _, ignored = of("Instance.ListInstances").read((), "page=1&nothing=1&a.b=2&cluster[=1", b"")
    assert list(ignored) == ["nothing", "a.b", "cluster["]
    _, ignored = of("Instance.CreateInstance").read((), "alias=x", b'{"nothing": {"deep": 1}}')
    assert list(ignored) == ["nothing", "alias"]  # a route whose body is the whole message takes no parameters


@pytest.mark.parametrize(("query", "body", "field"), [("nothing=1", b"", "nothing"), ("", b'{"no": 1}', "no")])
def test_our_own_methods_refuse_unknown_fields(query: str, body: bytes, field: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        of("Instance.CreateBackup", "instance").read(("demo",), query, body)
    assert refused.value.violations[0][0] == field


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("page=x", "page"),
        ("page=1_0", "page"),
        ("page=%D9%A1", "page"),
        ("page=2147483648", "page"),
        ("page=1&page=2", "page"),
        ("page=", "page"),
        ("sortBy=no_such", "sortBy"),
        ("name=a%00b", "name"),
        ("name=%ff", "query"),
        ("&".join(f"p{i}=" for i in range(MOST_PARAMETERS + 1)), "query"),
    ],
)
def test_a_parameter_that_cannot_be_read_is_named(query: str, field: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        of("Instance.ListInstances").read((), query, b"")
    assert refused.value.violations[0][0] == field


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("cluster.metadata.creationTimestamp", "9223372036854775808"),
        ("cluster.metadata.creationTimestamp", "-9223372036854775809"),
        ("cluster.status.cpuUsage", "nan"),
        ("cluster.status.cpuUsage", "1e999"),
        ("cluster.metadata.labels[x]", "a%00"),
    ],
)
def test_a_nested_parameter_that_cannot_be_read_is_named_by_its_path(parameter: str, value: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        of("Cluster.RemoveJoinedCluster", "instance", "name").read(("a", "b"), f"{parameter}={value}", b"")
    assert refused.value.violations[0][0] == parameter


@pytest.mark.parametrize("value", ["a\x00b", "a\nb", "a\rb", "\x7f", ".", ".."])
def test_a_variable_is_no_control_character_and_no_dot_segment(value: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        of("Instance.GetInstance", "name").read((value,), "", b"")
    assert refused.value.violations[0][0] == "name"


SIZE = 16 << 20


@pytest.mark.parametrize(
    ("body", "refused"),
    [
        pytest.param(b'{"data": "' + b"a" * SIZE + b'"}', False, id="one text"),
        pytest.param(b'{"data": "' + b'\\"' * (SIZE // 2) + b'"}', False, id="a text of escapes"),
        pytest.param(b'{"x": [' + b"1," * (MOST_VALUES - 10) + b"1]}", False, id="as many values as may be"),
        pytest.param(b'{"x": [' + b"1," * (SIZE // 2) + b"1]}", True, id="numbers"),
        pytest.param(b'{"x": [' + b"[]," * (SIZE // 3) + b"[]]}", True, id="arrays"),
        pytest.param(b'{"x": [' + b'"a",' * (SIZE // 4) + b'"a"]}', True, id="texts"),
        pytest.param(b'{"x": [' + b'{"a": 1},' * (SIZE // 9) + b"{}]}", True, id="objects"),
    ],
)
def test_reading_a_large_body_lets_the_event_loop_run(body: bytes, refused: bool) -> None:
    """Measures how much is computed without a break, because wall time says nothing on a loaded machine."""
    computing, done, seen = time.pthread_getcpuclockid(threading.get_ident()), threading.Event(), [time.thread_time()]

    def look() -> None:
        while not done.wait(0.001):
            seen.append(time.clock_gettime(computing))

    looking = threading.Thread(target=look)
    looking.start()
    try:
        with pytest.raises(InvalidArgument, match="values") if refused else nullcontext():
            of("Apps.CreateDeployment").read((), "", body)
    finally:
        done.set()
        looking.join()
    seen.append(time.thread_time())
    assert max(after - before for before, after in pairwise(seen)) < 0.5
