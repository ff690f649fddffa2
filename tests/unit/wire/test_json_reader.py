"""A client that sends bad JSON is told what is wrong and where; unknown fields are reported."""

import pytest

from kairship.gen.kairship.instance.v1alpha1.instance_pb import CreateInstanceRequest
from kairship.wire import UnreadableError, read


def test_what_is_not_known_is_ignored_and_reported() -> None:
    text = b'{"cluster": "host", "colour": 1, "data": {"metadata": {"name": "prod", "mood": {"name": 1}}}}'
    reading = read(CreateInstanceRequest, text, strict=False)
    assert reading.ignored == ("colour", "data.metadata.mood")
    assert reading.message.cluster == "host"
    assert reading.message.data is not None
    assert reading.message.data.metadata is not None
    assert reading.message.data.metadata.name == "prod"


def test_what_is_not_known_inside_lists_and_maps_is_reported_too() -> None:
    text = b"""{"data": {"status": {"conditions": [{}, {"mood": 1}],
               "summary": {"workLoadSummary": {"jobs": {"totalNum": 1, "mood": 1}}}}}}"""
    reading = read(CreateInstanceRequest, text, strict=False)
    assert reading.ignored == ("data.status.conditions[1].mood", "data.status.summary.workLoadSummary[jobs].mood")


def test_what_is_not_known_is_refused_by_our_own_methods() -> None:
    with pytest.raises(UnreadableError, match="colour: there is no such field"):
        read(CreateInstanceRequest, b'{"colour": 1}', strict=True)


BAD = [
    ('{"cluster": 1}', "cluster", "must be a string"),
    ('{"data": 1}', "data", "must be an object"),
    ('{"data": {"metadata": {"labels": {"a": 1}}}}', "data.metadata.labels", "each value a string"),
    ('{"data": {"metadata": {"finalizers": ["a", 1]}}}', "data.metadata.finalizers", "each item a string"),
    (
        '{"data": {"metadata": {"creationTimestamp": "9223372036854775808"}}}',
        "data.metadata.creationTimestamp",
        "must be an integer of 64 bits",
    ),
    ('{"data": {"metadata": {"creationTimestamp": 1.5}}}', "data.metadata.creationTimestamp", "must be an integer"),
    (
        '{"data": {"metadata": {"ownerReferences": [{}, {"controller": "yes"}]}}}',
        "data.metadata.ownerReferences[1].controller",
        "must be true or false",
    ),
    ('{"data": {"status": {"state": "HAPPY"}}}', "data.status.state", "must be one of INSTANCE_STATE_UNSPECIFIED,"),
    (
        '{"data": {"status": {"summary": {"workLoadSummary": {"jobs": {"totalNum": 2147483648}}}}}}',
        "data.status.summary.workLoadSummary[jobs].totalNum",
        "must be an integer of 32 bits",
    ),
    ('{"colour": 1, "cluster": 1}', "cluster", "must be a string"),
    ('{"cluster": "a", "cluster": "b"}', "cluster", "is there twice"),
    ("[]", "", "must be an object"),
    ("null", "", "must be an object"),
    ("", "", "is not JSON"),
    ('{"cluster": "a"', "", "is not JSON"),
    ('{"cluster": NaN}', "", "is not JSON: NaN"),
    (r'{"cluster": "\ud800"}', "", "is not JSON"),
    ("[" * 10_000 + "]" * 10_000, "", "is nested too deeply"),
    ('{"data":' * 10_000 + "1" + "}" * 10_000, "", "is nested too deeply"),
]


@pytest.mark.parametrize(("text", "path", "problem"), BAD, ids=[text[:60] for text, _, _ in BAD])
def test_a_problem_is_found_where_it_is(text: str, path: str, problem: str) -> None:
    with pytest.raises(UnreadableError) as refusal:
        read(CreateInstanceRequest, text.encode(), strict=False)
    assert refusal.value.path == path
    assert problem in refusal.value.problem


@pytest.mark.parametrize("text", [b'{"cluster": "\xff"}', '{"cluster": "a"}'.encode("utf-16")])
def test_what_is_not_utf_8_is_refused(text: bytes) -> None:
    with pytest.raises(UnreadableError, match="is not JSON"):
        read(CreateInstanceRequest, text, strict=False)
