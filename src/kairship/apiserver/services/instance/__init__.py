"""The Instance service: people's wishes become custom resources, which the controllers bring about.

`view` and `intent` turn one into the other. What the service does is divided by concept, each a part of the class in
`service`: `reading`, `writing`, `settings`, `backups`, `adopting`, `kubeconfig`.
"""

from kairship.apiserver.services.instance.service import InstanceService

__all__ = ["InstanceService"]
