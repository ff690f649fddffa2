"""A service that does not fit the protos is refused when the server starts."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from support.entrance import METHODS

from kairship.rpc.service_registry import RegistryError, ServiceRegistry
from kairship.wire import methods

INSTANCE = "kairship.v1alpha1.Instance"
AUTOSCALING = "kairship.v1alpha1.Autoscaling"


class Service:
    async def get_instance_json(self, request: Any, call: Any) -> Any: ...

    async def watch_instances(self, request: Any, call: Any) -> AsyncIterator[Any]:
        yield

    async def _helper(self) -> None: ...

    def plain(self) -> None: ...


def test_methods_are_found_by_name() -> None:
    service = Service()
    registry = ServiceRegistry({INSTANCE: service})
    assert registry.unary(METHODS["Instance.GetInstanceJSON"]) == service.get_instance_json
    assert registry.streaming(METHODS["Instance.WatchInstances"]) == service.watch_instances
    assert registry.unary(METHODS["Instance.GetInstance"]) is None
    assert len(registry.unimplemented()) == len(methods()) - 2


def test_abbreviations_are_written_as_one_would() -> None:
    class Autoscaling:
        async def get_federated_hpa_json(self, request: Any, call: Any) -> Any: ...

        async def list_federated_hpas(self, request: Any, call: Any) -> Any: ...

    assert len(ServiceRegistry({AUTOSCALING: Autoscaling()}).unimplemented()) == len(methods()) - 2


class Misspelt:
    async def get_instances(self, request: Any, call: Any) -> Any: ...


class NotAStream:
    async def watch_instances(self, request: Any, call: Any) -> Any: ...


class AStream:
    async def get_instance(self, request: Any, call: Any) -> AsyncIterator[Any]:
        yield


@pytest.mark.parametrize(
    ("name", "service", "complaint"),
    [
        ("kairship.v1alpha1.Nothing", Service(), "there is no service"),
        (INSTANCE, Misspelt(), "corresponds to no method"),
        (INSTANCE, NotAStream(), "must be an async generator"),
        (INSTANCE, AStream(), "must be a coroutine"),
    ],
)
def test_what_does_not_fit_is_refused(name: str, service: object, complaint: str) -> None:
    with pytest.raises(RegistryError, match=complaint):
        ServiceRegistry({name: service})
