"""The rights of global management in the global cluster: registrations with their status, and its lease.

Of all Secrets it may read only the one that its deliveries to the entrance are signed with.
"""

from kairship.resources import REGISTRATIONS
from kairship.resources.binding_webhook import SECRET
from kairship.resources.install.service_account import Manifest, rule, service_account

ACCOUNT = "kairship-ghippo"

_READ = ("get", "list", "watch")


def manifests() -> list[Manifest]:
    """The service account and its RBAC. Their namespace must exist."""
    return service_account(
        ACCOUNT,
        everywhere=[
            rule(REGISTRATIONS.group, [REGISTRATIONS.plural], _READ),
            rule(REGISTRATIONS.group, [f"{REGISTRATIONS.plural}/status"], ["patch"]),
        ],
        in_namespace=[
            rule("", ["secrets"], ["get"]) | {"resourceNames": [SECRET]},
            rule("coordination.k8s.io", ["leases"], ["get", "create", "update"]),
        ],
    )
