"""From what callers ask for to the custom resource that says so. Pure functions."""

from typing import Any

from kairship.apiserver.services.offers import Offers
from kairship.gen.kairship.instance.v1alpha1.instance_pb import CreateInstanceRequest, Instance, InstanceSpec
from kairship.kube import Object
from kairship.resources import DriverName
from kairship.rpc.errors import InvalidArgument


def new_instance(request: CreateInstanceRequest, offers: Offers) -> Object:
    """The object to create. Raises `InvalidArgument` for what the API server would not find out."""
    asked = request.data or Instance()
    spec = asked.spec or InstanceSpec()
    if asked.metadata is None or not asked.metadata.name:
        raise InvalidArgument(violations=[("data.metadata.name", "the instance needs a name")])
    driver = offers.driver(spec.driver, field="data.spec.driver")
    if driver is DriverName.EXTERNAL:
        raise InvalidArgument(
            violations=[("data.spec.driver", "a Karmada that exists is adopted: use instances:adopt")]
        )
    if spec.version:
        offers.check_version(driver, spec.version, field="data.spec.version")
    host = _host_cluster(request, spec, driver)
    return {
        "metadata": {
            "name": asked.metadata.name,
            "labels": dict(asked.metadata.labels),
            "annotations": dict(asked.metadata.annotations),
        },
        "spec": _without_nothing(
            driver=str(driver),
            alias=spec.alias,
            description=spec.description,
            version=spec.version,
            hostCluster={"name": host} if host else None,
            releaseOnDelete=spec.release_on_delete,
        ),
    }


def _host_cluster(request: CreateInstanceRequest, spec: InstanceSpec, driver: DriverName) -> str:
    inside = spec.host_cluster.name if spec.host_cluster else ""
    if request.cluster and inside and request.cluster != inside:
        raise InvalidArgument(
            violations=[("cluster", f"is {request.cluster!r}, but data.spec.hostCluster.name is {inside!r}")]
        )
    host = request.cluster or inside
    if host and driver is not DriverName.OPERATOR:
        raise InvalidArgument(
            violations=[("cluster", f"the driver {driver} runs the control plane beside Kairship: leave it empty")]
        )
    return host


def _without_nothing(**fields: Any) -> Object:
    return {name: value for name, value in fields.items() if value}
