"""The operation tables fit the protos; a table that does not is refused before anything is served."""

from collections.abc import AsyncGenerator
from typing import Any, cast

import pytest
from protobuf import Message

from kairship.apiserver.services.kinds.apps import APPS
from kairship.apiserver.services.kinds.core import CORE
from kairship.apiserver.services.kinds.deployments import DEPLOYMENTS, pause
from kairship.apiserver.services.kinds.policies import OVERRIDE_POLICIES, POLICY
from kairship.apiserver.services.resources import (
    Create,
    Delete,
    Get,
    GetJSON,
    List,
    ObjectAccess,
    OperationTable,
    Patch,
    PatchWith,
    Update,
    Watch,
    bind_operations,
)
from kairship.rpc.calls import Call
from kairship.rpc.service_registry import RegistryError, ServiceRegistry
from kairship.wire import methods

UNUSED = cast("ObjectAccess", None)
APPS_SERVICE = "kairship.v1alpha1.Apps"


@pytest.mark.parametrize(("service", "table"), [("Apps", APPS), ("Core", CORE), ("Policy", POLICY)])
def test_every_bound_method_is_served_and_no_other_is(service: str, table: OperationTable) -> None:
    name = f"kairship.v1alpha1.{service}"
    unserved = ServiceRegistry({name: bind_operations(name, table, UNUSED)}).unimplemented()
    assert {method.path for method in methods().values()} - {method.path for method in unserved} == {
        f"/{name}/{method}" for method in table
    }


async def echo(access: ObjectAccess, request: Any, call: Call) -> Message[Any]:
    assert access is UNUSED
    return cast("Message[Any]", request)


async def count(access: ObjectAccess, request: Any, call: Call) -> AsyncGenerator[Message[Any], None]:
    assert access is UNUSED
    yield request
    yield request


async def test_functions_are_operations_too() -> None:
    registry = ServiceRegistry(
        {APPS_SERVICE: bind_operations(APPS_SERVICE, {"GetDeployment": echo, "WatchDeployments": count}, UNUSED)}
    )
    unary = registry.unary(methods()[f"/{APPS_SERVICE}/GetDeployment"])
    assert unary is not None
    assert await unary("request", cast("Call", None)) == "request"
    streaming = registry.streaming(methods()[f"/{APPS_SERVICE}/WatchDeployments"])
    assert streaming is not None
    assert [reply async for reply in streaming("request", cast("Call", None))] == ["request", "request"]


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        ({"ListDeployment": List(DEPLOYMENTS)}, "has no method ListDeployment"),
        ({"CreateConfigMap": Create(DEPLOYMENTS)}, "has no method CreateConfigMap"),
        ({"ListDeployments": List(OVERRIDE_POLICIES)}, "ListDeploymentsResponse is not its reply"),
        ({"GetDeployment": List(DEPLOYMENTS)}, "GetDeploymentRequest lacks page"),
        ({"GetDeploymentJSON": Get(DEPLOYMENTS)}, "GetDeploymentJSONResponse is not its reply"),
        ({"GetDeployment": GetJSON(DEPLOYMENTS)}, "Deployment is not its reply"),
        ({"GetDeployment": Get(OVERRIDE_POLICIES)}, "Deployment is not its reply"),
        ({"GetDeploymentJSON": Create(DEPLOYMENTS)}, "GetDeploymentJSONRequest lacks data"),
        ({"CreateDeployment": Update(DEPLOYMENTS)}, "CreateDeploymentRequest lacks name"),
        ({"GetDeploymentJSON": Patch(DEPLOYMENTS)}, "lacks data"),
        ({"ListInstanceDeployments": Get(DEPLOYMENTS)}, "lacks namespace"),
        ({"PauseDeployment": Delete(DEPLOYMENTS)}, "PauseDeploymentResponse is not its reply"),
        ({"DeleteDeployment": PatchWith(DEPLOYMENTS, pause)}, "Empty is not its reply"),
        ({"WatchDeployments": Watch(OVERRIDE_POLICIES)}, "WatchDeploymentsResponse is not its reply"),
        ({"PauseDeployment": Watch(DEPLOYMENTS)}, "needs a coroutine function"),
        ({"WatchDeployments": echo}, "needs an async generator"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(table: OperationTable, complaint: str) -> None:
    with pytest.raises(RegistryError, match=complaint):
        bind_operations(APPS_SERVICE, table, UNUSED)
