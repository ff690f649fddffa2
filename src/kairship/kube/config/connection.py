"""How to connect to one API server, as a value: address, trust and identity."""

import re
from pathlib import Path

import msgspec
from yarl import URL

from kairship.kube.config.kubeconfig import ClusterEntry, Kubeconfig, UserEntry, write_kubeconfig
from kairship.kube.errors import ConfigError

_TOKEN = re.compile(r"[\x21-\x7e]+")  # visible ASCII: other characters would not arrive unchanged, or would add headers


class Connection(msgspec.Struct, frozen=True):
    """One API server and one identity at it. Certificates and keys are PEM; without `ca` the system's CAs are trusted.

    `token_file` wins over `token`, because another process renews it. The representation shows no secret.
    """

    server: str
    ca: bytes | None = None
    client_cert: bytes | None = None
    client_key: bytes | None = None
    token: str | None = None
    token_file: str | None = None
    tls_server_name: str | None = None
    insecure_skip_tls_verify: bool = False

    def __post_init__(self) -> None:
        try:
            url = URL(self.server)
            plain = url.scheme in {"http", "https"} and url.host and not (url.user or url.query_string or url.fragment)
        except ValueError:
            plain = False
        if not plain:
            # The address is not quoted, because it may contain a password.
            raise ConfigError("the server must be an address like https://host:6443, without user, query or fragment")
        if url.scheme == "http" and (self.token or self.token_file or self.client_cert):
            raise ConfigError(f"{self.server} is not encrypted: credentials are sent over https only")
        if self.token and not is_token(self.token):
            raise ConfigError(f"{self.server}: the token has characters that no token may have, perhaps a line break")
        if (self.client_cert is None) != (self.client_key is None):
            raise ConfigError(f"{self.server}: either the client certificate or its key is missing; give both")
        if self.insecure_skip_tls_verify and self.ca:
            raise ConfigError(f"{self.server}: a CA and insecure-skip-tls-verify were given together; use one of them")

    def __repr__(self) -> str:
        identity = [field for field in ("client_cert", "token", "token_file") if getattr(self, field)]
        return f"Connection(server={self.server!r}, identity={' and '.join(identity) or 'none'})"

    @classmethod
    def from_kubeconfig(cls, source: str | Path | bytes, context: str | None = None) -> "Connection":
        """Reads a kubeconfig: a file (`str` or `Path`), or its content (`bytes`), which may not refer to files."""
        cluster, user = Kubeconfig.load(source).select(context)
        return cls(
            server=cluster.server.rstrip("/"),
            ca=cluster.certificate_authority_data,
            client_cert=user.client_certificate_data,
            client_key=user.client_key_data,
            token=user.token,
            token_file=user.token_file,
            tls_server_name=cluster.tls_server_name,
            insecure_skip_tls_verify=cluster.insecure_skip_tls_verify,
        )

    def to_kubeconfig(self, *, name: str, user: str = "kairship") -> bytes:
        """Returns a kubeconfig whose only context is `name`. It contains the secrets: write it with mode 0600."""
        cluster = ClusterEntry(
            server=self.server,
            certificate_authority_data=self.ca,
            tls_server_name=self.tls_server_name,
            insecure_skip_tls_verify=self.insecure_skip_tls_verify,
        )
        identity = UserEntry(
            client_certificate_data=self.client_cert,
            client_key_data=self.client_key,
            token=self.token,
            token_file=self.token_file,
        )
        return write_kubeconfig(name, cluster, user, identity)


def is_token(text: str) -> bool:
    """Whether `text` can be sent as a bearer token."""
    return _TOKEN.fullmatch(text) is not None
