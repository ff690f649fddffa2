"""The services of the API: one object for each service of the protos.

Services know requests and replies, custom resources and Kubernetes; how a request came, who may make it and how long it
may take was decided before. `Services` is all of them with what they share, for the process that serves them:

    services = Services(client, pool, clock=clock, metrics=metrics, offers=offers)
    tasks.create_task(services.run())
    await services.wait_synced()
    Registry(services.by_name())
"""

from kairship.apiserver.services.assembly import Services
from kairship.apiserver.services.instance.part import Settings
from kairship.apiserver.services.offers import EXTERNAL, Offer

__all__ = ["EXTERNAL", "Offer", "Services", "Settings"]
