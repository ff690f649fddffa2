"""Makes a connection of a credential that a user gives. Only the current context of a kubeconfig is kept.

A kubeconfig must not run commands, name files of this machine, use a proxy, impersonate another user, or leave the
server unverified; `kairship.kube` refuses all of that and says why.
"""

import asyncio

from kairship.gen.kairship.kpanda.v1alpha1.credential_pb import Credential, Token
from kairship.instances.pool.sources import connection_from
from kairship.kube import ConfigError, Connection, ssl_context

_NAME = "cluster"


async def read_credential(credential: Credential, *, endpoint: str = "") -> tuple[bytes, Connection]:
    """The kubeconfig to keep, and its connection, at `endpoint` if that is given. Raises `ConfigError`."""
    return await asyncio.to_thread(_read, credential, endpoint)


async def read_stored(kubeconfig: bytes, *, endpoint: str | None) -> Connection:
    """The connection of a kubeconfig from a Secret, which another process may have written. Raises `ConfigError`."""
    return await asyncio.to_thread(lambda: _checked(connection_from(kubeconfig, endpoint=endpoint or None)))


def _read(credential: Credential, endpoint: str) -> tuple[bytes, Connection]:
    form = credential.form
    if form is not None and isinstance(form.value, Token):
        token = form.value
        given = Connection(
            server=token.server.rstrip("/"), ca=token.certificate_authority.encode() or None, token=token.token
        )
        kubeconfig = given.to_kubeconfig(name=_NAME)
    else:
        text = str(form.value) if form is not None else ""
        kubeconfig = connection_from(text.encode()).to_kubeconfig(name=_NAME)
    return kubeconfig, _checked(connection_from(kubeconfig, endpoint=endpoint or None))


def _checked(connection: Connection) -> Connection:
    if not (connection.token or connection.client_cert):
        raise ConfigError("there is no credential in it: a client certificate with its key, or a token, is needed")
    ssl_context(connection)  # raises if certificates and keys are not valid
    return connection
