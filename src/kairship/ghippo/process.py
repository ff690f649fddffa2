"""The process `kairship ghippo`: the services of global management for the entrance, and the work behind them.

One event loop; databases and argon2 have threads of their own. Every replica serves. What must be done by one at a time
(registrations, deliveries, upkeep) is done by the replica that holds the lease; on SQLite there is one replica, which
does it from the first moment. On SIGTERM followers are let go, calls that run have some seconds, and then it ends.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing

import structlog
from prometheus_client import CollectorRegistry, generate_latest

from kairship.ghippo import first_run, users
from kairship.ghippo.audit import AuditLog
from kairship.ghippo.database import Database
from kairship.ghippo.errors import Unavailable
from kairship.ghippo.leading import Duties
from kairship.ghippo.oidc import Issuers, ProviderLogin
from kairship.ghippo.passwords import Passwords
from kairship.ghippo.sealing import Sealer
from kairship.ghippo.services import services
from kairship.ghippo.services.directory import Directory
from kairship.ghippo.settings import AUDIENCE, CALLERS, LEASE, Settings
from kairship.ghippo.sign_in import SignIn
from kairship.kube import Client, Connection
from kairship.process.certificates import ServerCertificate
from kairship.process.logs import log_as_json
from kairship.process.ops import Ops
from kairship.process.stopping import until_stopped
from kairship.reconcile import Elector
from kairship.rpc.registry import Registry
from kairship.rpc.role_server import RoleServer
from kairship.rpc.service_tokens import ServiceTokens

USER_AGENT = "kairship-ghippo"
_LOOK_AGAIN = 1.0

log = structlog.get_logger(__name__)


async def run(settings: Settings) -> None:
    """Until SIGTERM or SIGINT. Raises `StartError` or `KubeError` if it cannot even begin."""
    log_as_json()
    await until_stopped(GlobalManagement(settings).run())


class GlobalManagement:
    """One replica."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._connection = Connection.from_kubeconfig(settings.kubeconfig)
        self._certificate = ServerCertificate(settings.tls)
        self._registry = CollectorRegistry()
        self._state = "starting"

    async def run(self) -> None:
        """Until cancelled."""
        settings = self._settings
        ops = Ops(ready=self._say_ready, metrics=lambda: asyncio.to_thread(generate_latest, self._registry))
        async with ops.serving((settings.ops_host, settings.ops_port)) as ops_port, self._database() as database:
            sealer = await asyncio.to_thread(Sealer.from_file, settings.key)
            with closing(Passwords()) as passwords:
                await self._let_somebody_in(database, passwords)
                await self._serve(database, passwords, sealer, ops_port)

    async def _serve(self, database: Database, passwords: Passwords, sealer: Sealer, ops_port: int) -> None:
        audit, issuers = AuditLog(sealer), Issuers()
        sign_in = SignIn(database, passwords, sealer, audit)
        directory = Directory(database, sign_in)
        found = services(
            database=database,
            passwords=passwords,
            sealer=sealer,
            audit=audit,
            sign_in=sign_in,
            providers=ProviderLogin(database, sealer, sign_in, issuers),
            directory=directory,
        )
        duties = Duties(self._settings, self._connection, database, sealer, audit, registry=self._registry)
        address = f"{self._settings.host}:{self._settings.port}"
        async with Client(self._connection, user_agent=USER_AGENT) as client:
            tokens = ServiceTokens(client, audience=AUDIENCE, accounts=CALLERS)
            server = RoleServer(Registry(found), tokens, metrics=self._registry)
            try:
                async with server.serving(address, self._certificate) as port:
                    self._state = "ready"
                    log.info("serving", port=port, ops_port=ops_port)
                    try:
                        await self._work(database, duties)
                    finally:
                        self._state = "stopping"
                        directory.end()
            finally:
                await issuers.close()

    async def _work(self, database: Database, duties: Duties) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._certificate.follow())
            if self._settings.first_password is not None:
                tasks.create_task(first_run.remove_when_changed(database, self._settings.first_password))
            if self._settings.first_token is not None:
                tasks.create_task(first_run.keep_token(database, self._settings.first_token))
            if self._settings.has_replicas:
                elector = Elector(self._connection, LEASE, metrics=duties.metrics)
                tasks.create_task(elector.run(duties.run))
            else:
                tasks.create_task(duties.run(None))

    @asynccontextmanager
    async def _database(self) -> AsyncIterator[Database]:
        """Open and migrated. A server that does not answer yet is waited for."""
        database = Database(await asyncio.to_thread(self._settings.read_database_url))
        try:
            while True:
                try:
                    await database.open()
                    break
                except Unavailable:
                    self._state = "the database does not answer yet"
                    await asyncio.sleep(_LOOK_AGAIN)
            yield database
        finally:
            await database.close()

    async def _let_somebody_in(self, database: Database, passwords: Passwords) -> None:
        password, token = self._settings.first_password, self._settings.first_token
        if await database.read(users.exist):
            return
        if password is None:
            log.warning("nobody can sign in: there is no user, and no --first-password for the first")
        elif await first_run.create_admin(database, passwords, password=password, token=token):
            log.info("the first administrator was created", name=users.ADMIN)

    async def _say_ready(self) -> tuple[bool, str]:
        return self._state == "ready", self._state
