"""The Instance service, composed of its parts."""

from kairship.apiserver.services.instance.adoption import InstanceAdoption
from kairship.apiserver.services.instance.backups import InstanceBackups
from kairship.apiserver.services.instance.instance_settings import InstanceSettings
from kairship.apiserver.services.instance.kubeconfig import InstanceKubeconfigs
from kairship.apiserver.services.instance.reads import InstanceReads
from kairship.apiserver.services.instance.writes import InstanceWrites


class InstanceService(
    InstanceReads, InstanceWrites, InstanceSettings, InstanceBackups, InstanceAdoption, InstanceKubeconfigs
):
    """kairship.v1alpha1.Instance."""
