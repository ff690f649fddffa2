"""The Instance service: it writes Instance custom resources, which the controllers carry out.

`new_instance` makes the custom resource from a request, `view` makes the message from the custom resource. The class in
`service` is composed of one part for each concept: `reads`, `writes`, `instance_settings`, `backups`, `adoption` and
`kubeconfig`, over what they share (`base`). `kubeconfig_settings` has what the operator decides about kubeconfigs.
"""

from kairship.apiserver.services.instance.service import InstanceService

__all__ = ["InstanceService"]
