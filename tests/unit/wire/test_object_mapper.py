"""Kubernetes objects as messages: every object can be shown, whatever it contains."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kairship.gen.kairship.apps.v1alpha1.deployment_pb import Deployment
from kairship.gen.kairship.core.v1alpha1.container_pb import Container, EnvVarSource
from kairship.gen.kairship.core.v1alpha1.probe_pb import Lifecycle, Probe
from kairship.gen.kairship.core.v1alpha1.volume_pb import Volume
from kairship.gen.kairship.policy.v1alpha1.propagation_pb import PropagationPolicy
from kairship.gen.kairship.types.v1alpha1.metadata_pb import ObjectMeta
from kairship.gen.kairship.types.v1alpha1.taint_pb import Taint, TaintEffect
from kairship.gen.kairship.types.v1alpha1.workload_pb import RollingUpdate
from kairship.kube.quantities import parse_quantity
from kairship.wire import ObjectMapper, write

MIRROR = ObjectMapper()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = (
    "metadata",
    "spec",
    "status",
    "template",
    "containers",
    "labels",
    "replicas",
    "conditions",
    "placement",
    "name",
)


def test_names_of_the_published_api_and_of_kubernetes_meet() -> None:
    assert MIRROR.of(EnvVarSource, {"configMapKeyRef": {"name": "a", "key": "b"}}).config_map_key_ref is not None
    lifecycle = MIRROR.of(Lifecycle, {"postStart": {"tcpSocket": {"port": 80}}})
    assert lifecycle.post_start is not None
    assert lifecycle.post_start.tcp_socket is not None
    assert lifecycle.post_start.tcp_socket.port == 80
    volume = MIRROR.of(Volume, {"downwardAPI": {"defaultMode": 420}})
    assert volume.downward_api is not None
    assert volume.downward_api.default_mode == 420


def test_numbers_may_be_text() -> None:
    assert MIRROR.of(RollingUpdate, {"maxSurge": "25%", "maxUnavailable": 1}) == RollingUpdate(
        max_surge="25%", max_unavailable="1"
    )
    volume = MIRROR.of(Volume, {"emptyDir": {"sizeLimit": "1Gi"}})
    assert volume.empty_dir is not None
    assert volume.empty_dir.size_limit == 2**30
    probe = MIRROR.of(Probe, {"httpGet": {"port": "http"}, "tcpSocket": {"port": "http"}, "periodSeconds": 2**40})
    assert probe.http_get is not None
    assert probe.http_get.port == "http"
    assert probe.tcp_socket is not None
    assert probe.tcp_socket.port == 0  # it has no number
    assert probe.period_seconds == 0


def test_times_are_seconds() -> None:
    shown = MIRROR.of(ObjectMeta, {"creationTimestamp": "2024-01-01T00:00:00Z", "deletionTimestamp": None})
    assert (shown.creation_timestamp, shown.deletion_timestamp) == (1704067200, 0)


def test_words_that_are_not_known_are_left_out() -> None:
    assert MIRROR.of(Taint, {"key": "a", "effect": "NoSchedule"}).effect is TaintEffect.NoSchedule
    assert MIRROR.of(Taint, {"key": "a", "effect": "Sometimes"}).effect is TaintEffect.UNSPECIFIED


def test_a_type_can_be_made_in_another_way() -> None:
    mirror = ObjectMapper({Container: lambda value: Container(name=value["name"].upper())})
    shown = mirror.of(Deployment, {"spec": {"template": {"spec": {"containers": [{"name": "web"}]}}}})
    assert shown.spec is not None
    assert shown.spec.template is not None
    assert shown.spec.template.spec is not None
    assert shown.spec.template.spec.containers == [Container(name="WEB")]


@settings(max_examples=40)
@given(st.dictionaries(st.sampled_from(FIELDS), JSON | st.dictionaries(st.sampled_from(FIELDS), JSON)))
def test_any_object_can_be_shown(obj: dict[str, Any]) -> None:
    for kind in (Deployment, PropagationPolicy):
        write(MIRROR.of(kind, obj))


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("1", "1"),
        ("500m", "0.5"),
        ("1.5Gi", str(1.5 * 2**30)),
        ("2k", "2000"),
        ("1e3", "1000"),
        ("-1", "-1"),
        ("100n", "1E-7"),
        ("", None),
        ("x", None),
        ("Gi", None),
        ("NaN", None),
        ("Infinity", None),
        ("1e400", None),
        ("1" * 65, None),
    ],
)
def test_quantities(text: str, amount: str | None) -> None:
    found = parse_quantity(text)
    assert found is None if amount is None else (found is not None and float(found) == float(amount))
