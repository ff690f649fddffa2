"""The custom resource of a new instance, made from the request to create it. Pure functions."""

from typing import Any

from kairship.apiserver.services.available_drivers import AvailableDrivers
from kairship.gen.kairship.instance.v1alpha1.instance_pb import CreateInstanceRequest, Instance, InstanceSpec
from kairship.kube import Object
from kairship.resources import DriverName
from kairship.rpc.errors import InvalidArgument


def new_instance(request: CreateInstanceRequest, drivers: AvailableDrivers) -> Object:
    """Returns the object to create. Raises `InvalidArgument` for mistakes that the API server would not find."""
    wanted = request.data or Instance()
    spec = wanted.spec or InstanceSpec()
    if wanted.metadata is None or not wanted.metadata.name:
        raise InvalidArgument(violations=[("data.metadata.name", "the instance needs a name")])
    driver = drivers.driver(spec.driver, field="data.spec.driver")
    if driver is DriverName.EXTERNAL:
        raise InvalidArgument(
            violations=[("data.spec.driver", "an existing Karmada is adopted, not created: use instances:adopt")]
        )
    if spec.version:
        drivers.check_version(driver, spec.version, field="data.spec.version")
    host = _host_cluster(request, spec, driver)
    return {
        "metadata": {
            "name": wanted.metadata.name,
            "labels": dict(wanted.metadata.labels),
            "annotations": dict(wanted.metadata.annotations),
        },
        "spec": _without_empty(
            driver=str(driver),
            alias=spec.alias,
            description=spec.description,
            version=spec.version,
            hostCluster={"name": host} if host else None,
            releaseOnDelete=spec.release_on_delete,
        ),
    }


def _host_cluster(request: CreateInstanceRequest, spec: InstanceSpec, driver: DriverName) -> str:
    in_spec = spec.host_cluster.name if spec.host_cluster else ""
    if request.cluster and in_spec and request.cluster != in_spec:
        raise InvalidArgument(
            violations=[("cluster", f"is {request.cluster!r}, but data.spec.hostCluster.name is {in_spec!r}")]
        )
    host = request.cluster or in_spec
    if host and driver is not DriverName.OPERATOR:
        raise InvalidArgument(
            violations=[
                ("cluster", f"the driver {driver} runs the control plane beside Kairship: leave the host cluster empty")
            ]
        )
    return host


def _without_empty(**fields: Any) -> Object:
    return {name: value for name, value in fields.items() if value}
