"""The services of the API: one for each service of the protos.

Services know requests and replies, custom resources and Kubernetes. How a request came in, whether its caller is
authorised and how long it may take was decided before. Each service of our own custom resources is a room (`cluster`,
`instance`, `workspace`), and so is `search`; `history` is a module. The services of objects in instances are tables of
operations (`kinds`) over the generic `resources`. The other modules are what several services share.

`Services` wires all of them together for the process that serves them:

    services = Services(client, pool, clock=clock, metrics=metrics, drivers=drivers)
    tasks.create_task(services.run())
    await services.wait_synced()
    Registry(services.by_name())
"""

from kairship.apiserver.services.available_drivers import EXTERNAL, AvailableDriver
from kairship.apiserver.services.instance.kubeconfig_settings import KubeconfigSettings, PublicAddress
from kairship.apiserver.services.wiring import Services

__all__ = ["EXTERNAL", "AvailableDriver", "KubeconfigSettings", "PublicAddress", "Services"]
