"""The Secrets with the credentials of clusters, in the plane's namespace: nothing else ever holds one.

A Secret is written before the Cluster that names it, so that no Cluster is ever without. Its name follows from the
identity of the cluster: two registrations of one cluster contend for the same Secret, and the API server lets one of
them win. Whoever is killed in between leaves a Secret that belongs to nobody; the janitor removes it.
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
IN_THE_MAKING = dt.timedelta(seconds=90)
"""For so long a Secret without its Cluster may be that of a registration under way."""


class _SecretMetadata(Metadata, frozen=True):
    creation_timestamp: dt.datetime | None = None


class CredentialSecret(msgspec.Struct, frozen=True):
    """A Secret without what is secret in it."""

    metadata: _SecretMetadata

    @property
    def cluster(self) -> str:
        return (self.metadata.labels or {}).get(CREDENTIAL_OF, "")

    def in_the_making(self, now: dt.datetime) -> bool:
        made = self.metadata.creation_timestamp
        return not self.metadata.owner_references and made is not None and now - made < IN_THE_MAKING


def secret_name(identity: str) -> str:
    """Of the credential of the cluster with this identity, which may be written in any way."""
    return f"cluster-{hashlib.sha256(identity.encode()).hexdigest()[:32]}"


class CredentialSecrets:
    def __init__(self, client: Client) -> None:
        """`client` is that of the global cluster."""
        self._client = client

    async def create(self, name: str, *, cluster: str, kubeconfig: bytes, timeout: float) -> CredentialSecret:
        """Raises `kairship.kube.AlreadyExists`."""
        secret: Object = {
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": {CREDENTIAL_OF: cluster}},
            "type": "Opaque",
            "data": _data(kubeconfig),
        }
        return await self._client.create(
            kinds.SECRETS, secret, field_manager=FIELD_MANAGER, as_type=CredentialSecret, timeout=timeout
        )

    async def read(self, name: str, *, timeout: float) -> CredentialSecret | None:
        try:
            return await self._client.get(
                kinds.SECRETS, name, namespace=NAMESPACE, as_type=CredentialSecret, timeout=timeout
            )
        except NotFound:
            return None

    async def replace(self, name: str, kubeconfig: bytes, *, timeout: float) -> CredentialSecret:
        """In one write: whoever reads sees the old one or the new one."""
        return await self._client.patch(
            kinds.SECRETS,
            name,
            {"data": _data(kubeconfig)},
            namespace=NAMESPACE,
            field_manager=FIELD_MANAGER,
            as_type=CredentialSecret,
            timeout=timeout,
        )

    async def renew(
        self, name: str, kubeconfig: bytes, *, resource_version: str, label: str, timeout: float
    ) -> CredentialSecret:
        """As `replace`, unless it is another version by now, which raises `kairship.kube.Conflict`."""
        return await self._client.patch(
            kinds.SECRETS,
            name,
            {"metadata": {"resourceVersion": resource_version, "labels": {RENEWED: label}}, "data": _data(kubeconfig)},
            namespace=NAMESPACE,
            field_manager=FIELD_MANAGER,
            as_type=CredentialSecret,
            timeout=timeout,
        )

    async def give_to(self, name: str, *, cluster: str, uid: str, timeout: float) -> None:
        """From now on it goes with its Cluster. One that is gone meanwhile needs no owner."""
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
        """This one: another that has its name by now stays."""
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
