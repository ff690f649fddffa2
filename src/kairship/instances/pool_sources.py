"""Where the pool learns what to connect to: instances, clusters, and the Secrets that hold their kubeconfigs.

Of each object only what leads to a connection is decoded and kept.
"""

import base64
import binascii
import hashlib
import os

import msgspec

from kairship.kube import Client, ConfigError, Connection, kinds
from kairship.reconcile import Metadata, Selection, resource_of
from kairship.resources import CLUSTERS, INSTANCES, KUBECONFIG, NAMESPACE, SecretReference

# A key of this process: without it a fingerprint in a memory dump says nothing about the credential.
_FINGERPRINT_KEY = os.urandom(32)


class Reference(msgspec.Struct, frozen=True):
    """The way to a target: of which object it is, the Secret with its kubeconfig, and perhaps another address."""

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
    """A Secret whose kubeconfig is replaced by its fingerprint while it is decoded: a store of them holds no secret."""

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
    """The kubeconfig in a Secret of the plane, and the version of the Secret that has it.

    Raises `NotFound`, `KubeconfigMissing`, or why it cannot be read.
    """
    found = await client.get(kinds.SECRETS, secret, namespace=NAMESPACE, as_type=_SecretContent, timeout=timeout)
    try:
        content = base64.b64decode((found.data or {}).get(KUBECONFIG, ""), validate=True)
    except binascii.Error:  # the API server lets no such Secret in
        content = b""
    if not content:
        raise KubeconfigMissing(f"Secret {NAMESPACE}/{secret} has no key {KUBECONFIG!r}")
    return found.metadata.resource_version, content


async def read_kubeconfig(client: Client, secret: str, *, timeout: float = 10.0) -> bytes:
    """As `read_secret`, without the version."""
    return (await read_secret(client, secret, timeout=timeout))[1]


def connection_from(kubeconfig: bytes, *, endpoint: str | None = None) -> Connection:
    """What a kubeconfig that somebody handed in leads to. Refuses what must not be used (`ConfigError`).

    A large one takes a while to parse: call it in a thread.
    """
    connection = Connection.from_kubeconfig(kubeconfig)
    if endpoint is not None:
        connection = msgspec.structs.replace(connection, server=endpoint.rstrip("/"))
    if connection.insecure_skip_tls_verify:
        raise ConfigError("the kubeconfig does not verify the server (insecure-skip-tls-verify): give its CA instead")
    if not connection.server.lower().startswith("https://"):
        raise ConfigError(f"{connection.server} is not encrypted: only https is used")
    return connection


def fingerprint(content: bytes) -> str:
    """Equal for equal content, within this process."""
    return hashlib.blake2b(content, key=_FINGERPRINT_KEY, digest_size=16).hexdigest()
