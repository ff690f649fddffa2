"""The ``external`` driver: a Karmada that its owner runs elsewhere, adopted by kubeconfig.

The driver uses the Karmada and nothing more: settings, versions, backups and deletion are the owner's business. The
claim is the only object that an adoption writes; before that, the steps check everything that could make the adoption a
mistake. Deleting the instance removes the claim and the plane's admission policies, and leaves all else as it is.

The driver keeps no state. It is given a function that finds the kubeconfig of an instance and calls it each time, so a
rotated credential needs no attention, and neither does a restart. Only the health is polled constantly; it uses the
connection of a pool, if there is one.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import structlog

from kairship.instances import admission
from kairship.instances.access_review import missing_rights
from kairship.instances.credentials import self_renewing
from kairship.instances.drivers.driver import (
    AdoptRefused,
    Backup,
    Capabilities,
    ComponentHealth,
    DesiredInstance,
    DriverError,
)
from kairship.instances.drivers.external import claim, health
from kairship.instances.drivers.external.identity import Identity, identify, level_of, require_karmada
from kairship.instances.drivers.external.required_rights import NEEDED
from kairship.instances.drivers.steps import Step
from kairship.instances.pool.sources import connection_from
from kairship.kube import (
    AddressRefused,
    AddressRule,
    Client,
    ConfigError,
    Connection,
    Forbidden,
    TransportError,
    Unauthorized,
)
from kairship.kube.cluster_identity import cluster_identity

KubeconfigSource = Callable[[str], Awaitable[bytes]]
"""Returns the kubeconfig of the instance with this UID. Raises ``DriverError`` when there is none."""

ConnectedClient = Callable[[str], Client | None]
"""Returns a client of the instance with this UID that is connected already, if there is one."""

TIMEOUT = 10.0

log = structlog.get_logger(__name__)


class ExternalDriver:
    """Implements ``Driver``."""

    capabilities = Capabilities(
        can_configure=False, can_restart=False, can_upgrade=False, can_backup=False, can_destroy=False, owns_ca=False
    )

    def __init__(
        self, kubeconfig_of: KubeconfigSource, *, addresses: AddressRule, connected: ConnectedClient = lambda _: None
    ) -> None:
        """`addresses` decides to which addresses of kubeconfigs the driver connects."""
        self._kubeconfig_of = kubeconfig_of
        self._addresses = addresses
        self._connected = connected

    def versions(self) -> Sequence[str]:
        return ()

    async def converge(self, desired: DesiredInstance) -> Sequence[Step]:
        """Adopts the Karmada. A version in the settings must agree with what is found; without one, any will do."""
        return [
            Step("reach", "reaching the API server with the kubeconfig", lambda: self._reach(desired.uid)),
            Step("recognise", "checking that it is a Karmada", lambda: self._recognise(desired.uid)),
            Step("rights", "checking what the credential may do", lambda: self._check_rights(desired.uid)),
            Step("version", "checking the version", lambda: self._check_version(desired)),
            Step("claim", "marking the Karmada as adopted", lambda: self._claim(desired)),
        ]

    async def upgrade(self, desired: DesiredInstance) -> Sequence[Step]:
        raise _owners_business(desired.name, "upgrade it")

    async def roll_back(self, desired: DesiredInstance) -> Sequence[Step]:
        return []  # no upgrade can have begun

    async def delete(self, uid: str) -> Sequence[Step]:
        return [Step("release", "removing claim and policies from the Karmada", lambda: self._release(uid))]

    async def connection(self, uid: str) -> Connection:
        try:
            return await asyncio.to_thread(connection_from, await self._kubeconfig_of(uid))
        except ConfigError as error:
            raise AdoptRefused(str(error)) from error

    async def renew_credential(self, uid: str) -> Connection | None:
        """Renews the token of a ServiceAccount, which may request new tokens of its own."""
        async with self._client(uid) as client:
            token = self_renewing.own_token(client.connection)
            if token is None:
                return None
            fresh = await self_renewing.renew(client, token, timeout=TIMEOUT)
            before = await cluster_identity(client)
        async with self._connect(fresh) as client:
            if await cluster_identity(client) != before:
                raise DriverError("the renewed token belongs to another Karmada than the one that was adopted")
        return fresh

    async def identity(self, uid: str) -> Identity:
        """Returns what the API of the Karmada shows of its identity and release."""
        async with self._client(uid) as client:
            return await identify(client)

    async def health(self, uid: str) -> Sequence[ComponentHealth]:
        """Returns the health of the components that the API shows; other components are left out."""
        if (connected := self._connected(uid)) is not None:
            return await health.observe(connected)
        async with self._client(uid) as client:
            return await health.observe(client)

    async def restart(self, uid: str, components: Collection[str]) -> None:
        raise _owners_business(f"the instance with UID {uid}", f"restart {', '.join(components)}")

    async def backup(self, uid: str, directory: Path) -> Backup:
        raise _owners_business(f"the instance with UID {uid}", "back it up")

    async def restore(self, desired: DesiredInstance, backup: Path) -> Sequence[Step]:
        raise _owners_business(desired.name, "restore it")

    @asynccontextmanager
    async def _client(self, uid: str) -> AsyncIterator[Client]:
        async with self._connect(await self.connection(uid)) as client:
            yield client

    def _connect(self, connection: Connection) -> Client:
        return Client(connection, max_connections=8, timeout=TIMEOUT, addresses=self._addresses)

    async def _reach(self, uid: str) -> None:
        async with self._client(uid) as client:
            try:
                await client.version()
            except AddressRefused as error:
                raise AdoptRefused(str(error)) from error

    async def _recognise(self, uid: str) -> None:
        async with self._client(uid) as client:
            await require_karmada(client)

    async def _check_rights(self, uid: str) -> None:
        async with self._client(uid) as client:
            if missing := await missing_rights(client, NEEDED):
                raise AdoptRefused(
                    "the credential lacks permissions that the plane needs; the owner of the Karmada must grant them "
                    "or give another credential. "
                    f"Missing: {'; '.join(map(str, missing))}"
                )

    async def _check_version(self, desired: DesiredInstance) -> None:
        found, stated = await self.identity(desired.uid), desired.settings.version
        if stated and level_of(stated) != found.level:
            raise AdoptRefused(
                f"this is not Karmada {stated}: it serves the API of {found.level}. Correct the version or leave it out"
            )

    async def _claim(self, desired: DesiredInstance) -> None:
        async with self._client(desired.uid) as client:
            await claim.claim(client, uid=desired.uid, name=desired.name)

    async def _release(self, uid: str) -> None:
        # A Karmada that is gone for good, or does not accept the credential any more, must not block the deletion.
        try:
            async with self._client(uid) as client:
                if await claim.is_held(client, uid=uid):
                    await _remove_policies(client)
                await claim.release(client, uid=uid)
        except (TransportError, Unauthorized, Forbidden, DriverError) as error:
            log.warning("instance deleted without removing its claim", uid=uid, claim=claim.CLAIM, error=str(error))


async def _remove_policies(client: Client) -> None:
    for resource, manifest in reversed(admission.manifests()):
        await client.delete(resource, manifest["metadata"]["name"], missing_ok=True)


def _owners_business(name: str, act: str) -> DriverError:
    return DriverError(f"{name} was adopted and is run by its owner, not by Kairship: {act} there")
