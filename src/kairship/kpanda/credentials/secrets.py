"""The Secrets with the credentials of clusters, in the plane's namespace. Nothing else holds credentials.

A Secret is created before the Cluster that names it, so that no Cluster is ever without its Secret. The name of the
Secret follows from the identity of the cluster: two registrations of one cluster contend for the same Secret, and the
API server lets one of them win. A registration that is killed in between leaves a Secret that belongs to no Cluster;
the janitor removes it.
"""

import base64
import datetime as dt
import hashlib
from contextlib import suppress

import msgspec

from kairship.instances.membership import RENEWED
from kairship.kube import Client, Conflict, NotFound, Object, kinds
from kairship.reconcile import Metadata, resource_of
from kairship.resources import CLUSTERS, KUBECONFIG, NAMESPACE

CREDENTIAL_OF = "kpanda.io/credential-of"
"""The label that says for which cluster the Secret was made."""
FIELD_MANAGER = "kairship-kpanda"
REGISTRATION_GRACE = dt.timedelta(seconds=90)
"""How long a Secret without a Cluster may belong to a registration that is still under way."""


class _SecretMetadata(Metadata, frozen=True):
    creation_timestamp: dt.datetime | None = None


class CredentialSecret(msgspec.Struct, frozen=True):
    """A Secret without its data."""

    metadata: _SecretMetadata

    @property
    def cluster(self) -> str:
        return (self.metadata.labels or {}).get(CREDENTIAL_OF, "")

    def is_being_registered(self, now: dt.datetime) -> bool:
        made = self.metadata.creation_timestamp
        return not self.metadata.owner_references and made is not None and now - made < REGISTRATION_GRACE


def secret_name(identity: str) -> str:
    """The name of the Secret of the cluster with this identity, which can be any text."""
    return f"cluster-{hashlib.sha256(identity.encode()).hexdigest()[:32]}"


class CredentialSecrets:
    def __init__(self, client: Client) -> None:
        """`client` is the client of the global cluster."""
        self._client = client

    async def create(self, name: str, *, cluster: str, kubeconfig: bytes, timeout: float) -> CredentialSecret:
        """Raises `kairship.kube.AlreadyExists`."""
        secret: Object = {
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": {CREDENTIAL_OF: cluster}},
            "type": "Opaque",
            "data": _data(kubeconfig),
        }
        return await self._client.typed(CredentialSecret).create(
            kinds.SECRETS, secret, field_manager=FIELD_MANAGER, timeout=timeout
        )

    async def read(self, name: str, *, timeout: float) -> CredentialSecret | None:
        try:
            return await self._client.typed(CredentialSecret).get(
                kinds.SECRETS, name, namespace=NAMESPACE, timeout=timeout
            )
        except NotFound:
            return None

    async def replace(self, name: str, kubeconfig: bytes, *, timeout: float) -> CredentialSecret:
        """Replaces the kubeconfig in one write, so that a reader sees the old one or the new one."""
        return await self._client.typed(CredentialSecret).patch(
            kinds.SECRETS,
            name,
            {"data": _data(kubeconfig)},
            namespace=NAMESPACE,
            field_manager=FIELD_MANAGER,
            timeout=timeout,
        )

    async def renew(
        self, name: str, kubeconfig: bytes, *, resource_version: str, label: str, timeout: float
    ) -> CredentialSecret:
        """As `replace`, if the Secret still has this version. Raises `kairship.kube.Conflict` if it does not."""
        return await self._client.typed(CredentialSecret).patch(
            kinds.SECRETS,
            name,
            {"metadata": {"resourceVersion": resource_version, "labels": {RENEWED: label}}, "data": _data(kubeconfig)},
            namespace=NAMESPACE,
            field_manager=FIELD_MANAGER,
            timeout=timeout,
        )

    async def set_owner(self, name: str, *, cluster: str, uid: str, timeout: float) -> None:
        """Makes a Cluster the owner of a Secret. A Secret that was removed meanwhile needs no owner."""
        resource = resource_of(CLUSTERS)
        owner = {"apiVersion": resource.api_version, "kind": resource.kind, "name": cluster, "uid": uid}
        with suppress(NotFound):
            await self._client.patch(
                kinds.SECRETS,
                name,
                {"metadata": {"ownerReferences": [owner]}},
                namespace=NAMESPACE,
                field_manager=FIELD_MANAGER,
                timeout=timeout,
            )

    async def remove(self, secret: CredentialSecret, *, timeout: float) -> None:
        """Removes this very Secret. Another Secret that has its name by now is not removed."""
        with suppress(Conflict):
            await self._client.delete(
                kinds.SECRETS,
                secret.metadata.name,
                namespace=NAMESPACE,
                uid=secret.metadata.uid,
                missing_ok=True,
                timeout=timeout,
            )


def _data(kubeconfig: bytes) -> dict[str, str]:
    return {KUBECONFIG: base64.b64encode(kubeconfig).decode()}
