"""The kubeconfig file format.

Features that this client does not support are refused rather than ignored: a kubeconfig with `exec`, a proxy or
impersonation that is used without them would act as another identity than its author meant.
"""

from pathlib import Path
from typing import Any

import msgspec
import yaml

from kairship.kube.documents import load_documents
from kairship.kube.errors import ConfigError

_MAX_SIZE = 1024 * 1024  # the limit of a Secret
_MAX_PARTS = 50_000


class ClusterEntry(msgspec.Struct, rename="kebab", omit_defaults=True):
    """The address of a server and how to verify it."""

    server: str = ""
    certificate_authority_data: bytes | None = None
    certificate_authority: str | None = None
    tls_server_name: str | None = None
    insecure_skip_tls_verify: bool = False
    proxy_url: str | None = None


class UserEntry(msgspec.Struct, rename="kebab", omit_defaults=True):
    """The identity. The representation says only which fields are set: all of them are secrets or refer to one."""

    client_certificate_data: bytes | None = None
    client_certificate: str | None = None
    client_key_data: bytes | None = None
    client_key: str | None = None
    token: str | None = None
    token_file: str | None = msgspec.field(default=None, name="tokenFile")
    exec: Any = None
    auth_provider: Any = None
    username: str | None = None
    as_user: str | None = msgspec.field(default=None, name="as")
    as_groups: Any = None

    def __repr__(self) -> str:
        return f"UserEntry({', '.join(name for name in self.__struct_fields__ if getattr(self, name))})"


class ContextEntry(msgspec.Struct):
    """A pair of a cluster and a user."""

    cluster: str = ""
    user: str = ""


class _NamedCluster(msgspec.Struct):
    name: str
    cluster: ClusterEntry


class _NamedUser(msgspec.Struct):
    name: str
    user: UserEntry


class _NamedContext(msgspec.Struct):
    name: str
    context: ContextEntry


class Kubeconfig(msgspec.Struct, rename="kebab"):
    """A kubeconfig. `directory` is that of its file; None if it was not read from a file."""

    api_version: str = msgspec.field(default="v1", name="apiVersion")
    kind: str = "Config"
    clusters: list[_NamedCluster] = []
    users: list[_NamedUser] = []
    contexts: list[_NamedContext] = []
    current_context: str = ""
    directory: Path | None = None

    @classmethod
    def load(cls, source: str | Path | bytes) -> "Kubeconfig":
        """Reads a kubeconfig from a file (`str` or `Path`) or from its content (`bytes`)."""
        if isinstance(source, bytes):
            return cls._parse(source, where="the kubeconfig", directory=None)
        path = Path(source)
        return cls._parse(_read(path, "kubeconfig"), where=str(path), directory=path.absolute().parent)

    @classmethod
    def _parse(cls, content: bytes, *, where: str, directory: Path | None) -> "Kubeconfig":
        documents = load_documents(content, called=where, max_size=_MAX_SIZE, max_parts=_MAX_PARTS)
        if len(documents) != 1 or not isinstance(document := documents[0], dict):
            raise ConfigError(f"{where} is not a kubeconfig: it is not a mapping")
        # An empty list is often written as `users: null`.
        document = {key: value for key, value in document.items() if value is not None}
        try:
            config = msgspec.convert(document, cls)
        except msgspec.ValidationError as error:
            raise ConfigError(f"{where} is not a kubeconfig: {error}") from None
        config.directory = directory
        return config

    def select(self, context: str | None = None) -> tuple[ClusterEntry, UserEntry]:
        """Returns the cluster and user of a context, by default the current one, with files read into `_data` fields.

        A token file stays a reference, with an absolute path, because its content rotates.
        """
        name = context or self.current_context
        if not name:
            raise ConfigError("the kubeconfig has no current-context: name the context to use")
        chosen = next((entry.context for entry in self.contexts if entry.name == name), None)
        if chosen is None:
            known = ", ".join(entry.name for entry in self.contexts) or "none"
            raise ConfigError(f"the kubeconfig has no context {name!r}; it has: {known}")
        cluster = next((entry.cluster for entry in self.clusters if entry.name == chosen.cluster), None)
        if cluster is None:
            raise ConfigError(f"context {name!r} names cluster {chosen.cluster!r}, which the kubeconfig does not have")
        user = next((entry.user for entry in self.users if entry.name == chosen.user), None)
        if user is None and chosen.user:
            raise ConfigError(f"context {name!r} names user {chosen.user!r}, which the kubeconfig does not have")
        user = user or UserEntry()
        _refuse_unsupported(cluster, user)
        return self._inline_cluster(cluster), self._inline_user(user)

    def _inline_cluster(self, cluster: ClusterEntry) -> ClusterEntry:
        data = cluster.certificate_authority_data or self._content(
            cluster.certificate_authority, "certificate-authority"
        )
        return msgspec.structs.replace(cluster, certificate_authority_data=data, certificate_authority=None)

    def _inline_user(self, user: UserEntry) -> UserEntry:
        return msgspec.structs.replace(
            user,
            client_certificate_data=user.client_certificate_data
            or self._content(user.client_certificate, "client-certificate"),
            client_certificate=None,
            client_key_data=user.client_key_data or self._content(user.client_key, "client-key"),
            client_key=None,
            token_file=str(self._locate(user.token_file, "tokenFile")) if user.token_file else None,
        )

    def _content(self, reference: str | None, field: str) -> bytes | None:
        return _read(self._locate(reference, field), field) if reference else None

    def _locate(self, reference: str, field: str) -> Path:
        # A kubeconfig that a user uploads could otherwise name a file of this machine, such as our own token, and have
        # it sent to a server of the user's choice.
        if self.directory is None:
            raise ConfigError(
                f"{field} refers to a file, which only a kubeconfig read from a file may do: embed the content"
            )
        return self.directory / reference


def write_kubeconfig(name: str, cluster: ClusterEntry, user: str, credential: UserEntry) -> bytes:
    """Returns a kubeconfig with one context, called `name`."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": msgspec.to_builtins(cluster)}],
        "users": [{"name": user, "user": msgspec.to_builtins(credential)}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
        "current-context": name,
    }
    return yaml.safe_dump(document, sort_keys=False).encode()


def _refuse_unsupported(cluster: ClusterEntry, user: UserEntry) -> None:
    refused = {
        "exec": (user.exec, "running a program for credentials is not supported"),
        "auth-provider": (user.auth_provider, "auth providers are not supported"),
        "username": (user.username, "API servers no longer accept passwords"),
        "as": (user.as_user or user.as_groups, "impersonation is the client's choice, not the kubeconfig's"),
        "proxy-url": (cluster.proxy_url, "proxies are not supported"),
    }
    for field, (value, reason) in refused.items():
        if value:
            raise ConfigError(f"the kubeconfig uses {field!r}: {reason}; use a client certificate or a token")


def _read(path: Path, field: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{field}: cannot read {path}: {error.strerror}") from error
