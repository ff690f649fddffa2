"""The sources of the pool: instances, clusters, and the Secrets that hold their kubeconfigs.

Only those fields of an object are decoded and kept that lead to a connection.
"""

import base64
import binascii
import hashlib
import os

import msgspec

from kairship.kube import Client, ConfigError, Connection, kinds
from kairship.reconcile import Metadata, Selection, resource_of
from kairship.resources import CLUSTERS, INSTANCES, KUBECONFIG, NAMESPACE, SecretReference

# The fingerprints are keyed, so that one that leaks reveals nothing about the credential.
_FINGERPRINT_KEY = os.urandom(32)


class Reference(msgspec.Struct, frozen=True):
    """What leads to a target: the UID of its object, the Secret with its kubeconfig, and perhaps another address."""

    uid: str
    secret: str | None
    endpoint: str | None = None


class _InstanceStatus(msgspec.Struct, frozen=True):
    credentials: SecretReference | None = None


class InstanceShape(msgspec.Struct, frozen=True):
    metadata: Metadata
    status: _InstanceStatus = _InstanceStatus()

    @property
    def reference(self) -> Reference:
        credentials = self.status.credentials
        return Reference(self.metadata.uid, credentials.name if credentials else None)


class _ClusterSpec(msgspec.Struct, frozen=True):
    credentials: SecretReference
    endpoint: str | None = None


class ClusterShape(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: _ClusterSpec

    @property
    def reference(self) -> Reference:
        return Reference(self.metadata.uid, self.spec.credentials.name, self.spec.endpoint)


class SecretShape(msgspec.Struct, frozen=True):
    """A Secret whose kubeconfig is replaced by its fingerprint during decoding: a cache of these holds no secrets."""

    metadata: Metadata
    data: dict[str, str] | None = None

    def __post_init__(self) -> None:
        encoded = (self.data or {}).get(KUBECONFIG, "")
        msgspec.structs.force_setattr(self, "data", {KUBECONFIG: fingerprint(encoded.encode())})


class _SecretContent(msgspec.Struct, frozen=True):
    metadata: Metadata
    data: dict[str, str] | None = None

    def __repr__(self) -> str:
        return "_SecretContent()"


class KubeconfigMissing(Exception):  # noqa: N818 - says what is the case
    """The Secret has no kubeconfig."""


def instances() -> Selection[InstanceShape]:
    return Selection(resource_of(INSTANCES), InstanceShape)


def clusters() -> Selection[ClusterShape]:
    return Selection(resource_of(CLUSTERS), ClusterShape)


def secrets() -> Selection[SecretShape]:
    return Selection(kinds.SECRETS, SecretShape, namespace=NAMESPACE)


async def read_secret(client: Client, secret: str, *, timeout: float = 10.0) -> tuple[str, bytes]:
    """Returns the resourceVersion of a Secret of the plane, and the kubeconfig in it.

    Raises `NotFound`, `KubeconfigMissing`, or the error of the API server.
    """
    found = await client.typed(_SecretContent).get(kinds.SECRETS, secret, namespace=NAMESPACE, timeout=timeout)
    try:
        content = base64.b64decode((found.data or {}).get(KUBECONFIG, ""), validate=True)
    except binascii.Error:  # the API server accepts no such Secret
        content = b""
    if not content:
        raise KubeconfigMissing(f"Secret {NAMESPACE}/{secret} has no key {KUBECONFIG!r}")
    return found.metadata.resource_version, content


async def read_kubeconfig(client: Client, secret: str, *, timeout: float = 10.0) -> bytes:
    """As `read_secret`, without the resourceVersion."""
    return (await read_secret(client, secret, timeout=timeout))[1]


def connection_from(kubeconfig: bytes, *, endpoint: str | None = None) -> Connection:
    """Returns the connection of a kubeconfig that a user supplied. Raises `ConfigError` for one that must not be used.

    A large kubeconfig takes a while to parse: call it in a thread.
    """
    connection = Connection.from_kubeconfig(kubeconfig)
    if endpoint is not None:
        connection = msgspec.structs.replace(connection, server=endpoint.rstrip("/"))
    if connection.insecure_skip_tls_verify:
        raise ConfigError("the kubeconfig does not verify the server (insecure-skip-tls-verify): give its CA instead")
    if not connection.server.lower().startswith("https://"):
        raise ConfigError(f"{connection.server} is not encrypted: use an https address")
    return connection


def fingerprint(content: bytes) -> str:
    """Returns a digest that is equal for equal content, within this process."""
    return hashlib.blake2b(content, key=_FINGERPRINT_KEY, digest_size=16).hexdigest()
