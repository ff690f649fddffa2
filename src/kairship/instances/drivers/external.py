"""The ``external`` driver: a Karmada that somebody else runs, adopted by kubeconfig.

It may use the Karmada and nothing more: settings, versions, backups and its end are its owner's. Before the one thing
that is written, the mark that says whose it is, everything is checked that could make the adoption a mistake. Letting
go removes the mark and leaves all else as it is.

The driver remembers nothing. Whoever makes it tells it where the kubeconfig of an instance is to be found, and it asks
for it anew each time: so a rotated credential needs no attention, and neither does a restart. Only how an instance is
doing is asked all the time, over connections that others keep, where there are any.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import structlog

from kairship.instances.credentials import self_renewing
from kairship.instances.drivers import external_claim, external_health
from kairship.instances.drivers.driver import (
    AdoptRefused,
    Backup,
    Capabilities,
    ComponentHealth,
    DesiredInstance,
    DriverError,
)
from kairship.instances.drivers.external_identity import Identity, identify, level_of, require_karmada, uid_of
from kairship.instances.drivers.external_rights import NEEDED
from kairship.instances.drivers.steps import Step
from kairship.instances.pool_sources import connection_from
from kairship.instances.rights import missing_rights
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

KubeconfigSource = Callable[[str], Awaitable[bytes]]
"""Gives the kubeconfig of the instance with this UID. Raises ``DriverError`` when there is none."""

Connected = Callable[[str], Client | None]
"""A client of the instance with this UID that is connected already, if there is one."""

TIMEOUT = 10.0

log = structlog.get_logger(__name__)


class ExternalDriver:
    """Implements ``Driver``."""

    capabilities = Capabilities(
        can_configure=False, can_restart=False, can_upgrade=False, can_backup=False, can_destroy=False, owns_ca=False
    )

    def __init__(
        self, kubeconfig_of: KubeconfigSource, *, addresses: AddressRule, connected: Connected = lambda _: None
    ) -> None:
        """`addresses` says where a Karmada may be, whatever a kubeconfig names."""
        self._kubeconfig_of = kubeconfig_of
        self._addresses = addresses
        self._connected = connected

    def versions(self) -> Sequence[str]:
        return ()

    async def converge(self, desired: DesiredInstance) -> Sequence[Step]:
        """Adopt it. A version in the settings is what its owner says that it is; without one, what is found counts."""
        return [
            Step("reach", "reaching the API server with the kubeconfig", lambda: self._reach(desired.uid)),
            Step("recognise", "checking that it is a Karmada", lambda: self._recognise(desired.uid)),
            Step("rights", "checking what the credential may do", lambda: self._check_rights(desired.uid)),
            Step("version", "checking the version", lambda: self._check_version(desired)),
            Step("claim", "marking the Karmada as adopted", lambda: self._claim(desired)),
        ]

    async def upgrade(self, desired: DesiredInstance) -> Sequence[Step]:
        raise _not_ours(desired.name, "upgrade it")

    async def roll_back(self, desired: DesiredInstance) -> Sequence[Step]:
        return []  # no upgrade can have begun

    async def delete(self, uid: str) -> Sequence[Step]:
        return [Step("release", "letting go of the Karmada", lambda: self._release(uid))]

    async def connection(self, uid: str) -> Connection:
        try:
            return await asyncio.to_thread(connection_from, await self._kubeconfig_of(uid))
        except ConfigError as error:
            raise AdoptRefused(str(error)) from error

    async def renewed(self, uid: str) -> Connection | None:
        """Of a ServiceAccount's token, which may ask for another one of its own."""
        async with self._client(uid) as client:
            token = self_renewing.own_token(client.connection)
            if token is None:
                return None
            fresh = await self_renewing.renewed(client, token, timeout=TIMEOUT)
            before = await uid_of(client)
        async with self._connected_by(fresh) as client:
            if await uid_of(client) != before:
                raise DriverError("the new token opens another Karmada than the one that was adopted")
        return fresh

    async def identity(self, uid: str) -> Identity:
        """What can be known of the Karmada from outside, its version included."""
        async with self._client(uid) as client:
            return await identify(client)

    async def health(self, uid: str) -> Sequence[ComponentHealth]:
        """What shows from outside; of a component that does not show there is no word."""
        if (connected := self._connected(uid)) is not None:
            return await external_health.observe(connected)
        async with self._client(uid) as client:
            return await external_health.observe(client)

    async def restart(self, uid: str, components: Collection[str]) -> None:
        raise _not_ours(f"the instance with UID {uid}", f"restart {', '.join(components)}")

    async def backup(self, uid: str, directory: Path) -> Backup:
        raise _not_ours(f"the instance with UID {uid}", "back it up")

    async def restore(self, desired: DesiredInstance, backup: Path) -> Sequence[Step]:
        raise _not_ours(desired.name, "restore it")

    @asynccontextmanager
    async def _client(self, uid: str) -> AsyncIterator[Client]:
        async with self._connected_by(await self.connection(uid)) as client:
            yield client

    def _connected_by(self, connection: Connection) -> Client:
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
                    "the credential lacks rights that the plane needs; grant them or give another credential. "
                    f"Missing: {'; '.join(map(str, missing))}"
                )

    async def _check_version(self, desired: DesiredInstance) -> None:
        found, said = await self.identity(desired.uid), desired.settings.version
        if said and level_of(said) != found.level:
            raise AdoptRefused(
                f"this is not Karmada {said}: it serves the API of {found.level}. Correct the version or leave it out"
            )

    async def _claim(self, desired: DesiredInstance) -> None:
        async with self._client(desired.uid) as client:
            await external_claim.claim(client, uid=desired.uid, name=desired.name)

    async def _release(self, uid: str) -> None:
        # A Karmada that is gone for good, or does not let us in any more, must not keep its instance alive.
        try:
            async with self._client(uid) as client:
                await external_claim.release(client, uid=uid)
        except (TransportError, Unauthorized, Forbidden, DriverError) as error:
            log.warning("let go without removing the mark", uid=uid, mark=external_claim.MARK, error=str(error))


def _not_ours(name: str, act: str) -> DriverError:
    return DriverError(f"{name} was adopted and is run by somebody else: {act} there")
