"""The service of the protos, put together from its parts."""

from kairship.apiserver.services.instance.adopting import Adopting
from kairship.apiserver.services.instance.backups import Backups
from kairship.apiserver.services.instance.kubeconfig import Kubeconfigs
from kairship.apiserver.services.instance.reading import Reading
from kairship.apiserver.services.instance.settings import SettingsOfInstances
from kairship.apiserver.services.instance.writing import Writing


class InstanceService(Reading, Writing, SettingsOfInstances, Backups, Adopting, Kubeconfigs):
    """kairship.v1alpha1.Instance."""
