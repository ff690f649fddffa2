"""The process `kairship ghippo`: serves global management to the entrance, and wires everything together.

It has one event loop; databases and argon2 have threads of their own. Every replica serves. Registrations, deliveries
and cleanup are done by the replica that holds the lease; on SQLite there is only one replica, which does them at once.
On SIGTERM it ends the streams of followers, gives running calls some seconds, and exits.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing

import structlog
from prometheus_client import CollectorRegistry, generate_latest

from kairship.ghippo.audit import AuditLog
from kairship.ghippo.database import Database
from kairship.ghippo.errors import Unavailable
from kairship.ghippo.identifiers import Now, now
from kairship.ghippo.identity import first_run, users
from kairship.ghippo.identity.oidc import Issuers, ProviderLogin
from kairship.ghippo.identity.passwords import Passwords
from kairship.ghippo.identity.sign_in import SignIn
from kairship.ghippo.leader_duties import LeaderDuties
from kairship.ghippo.sealing import Sealer
from kairship.ghippo.services.audit_trail import AuditTrail
from kairship.ghippo.services.audits import Audits
from kairship.ghippo.services.bindings import Bindings
from kairship.ghippo.services.current_user import CurrentUser
from kairship.ghippo.services.directory import Directory
from kairship.ghippo.services.folders import Folders
from kairship.ghippo.services.groups import Groups
from kairship.ghippo.services.identity_providers import IdentityProviders
from kairship.ghippo.services.roles import Roles
from kairship.ghippo.services.sessions import Sessions
from kairship.ghippo.services.users import Users
from kairship.ghippo.services.webhooks import Webhooks
from kairship.ghippo.services.workspaces import Workspaces
from kairship.ghippo.settings import AUDIENCE, CALLERS, LEASE, Settings
from kairship.kube import Client, Connection
from kairship.process.certificates import ServerCertificate
from kairship.process.logs import log_as_json
from kairship.process.ops import OpsServer
from kairship.process.signals import run_until_stopped
from kairship.reconcile import Elector
from kairship.rpc.backend_server import BackendServer
from kairship.rpc.service_registry import ServiceRegistry
from kairship.rpc.service_tokens import ServiceTokens

USER_AGENT = "kairship-ghippo"
_RETRY_DELAY = 1.0
_PUBLIC_PACKAGE = "kairship.ghippo.v1alpha1"
_INTERNAL_PACKAGE = "kairship.internal.v1"

log = structlog.get_logger(__name__)


async def run(settings: Settings) -> None:
    """Runs until SIGTERM or SIGINT. Raises `StartError` or `KubeError` if the process cannot start."""
    log_as_json()
    await run_until_stopped(GlobalManagement(settings).run())


class GlobalManagement:
    """One replica of global management."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._connection = Connection.from_kubeconfig(settings.kubeconfig)
        self._certificate = ServerCertificate(settings.tls)
        self._registry = CollectorRegistry()
        self._state = "starting"

    async def run(self) -> None:
        """Runs until it is cancelled."""
        settings = self._settings
        ops = OpsServer(
            ready=self._readiness,
            metrics=lambda: asyncio.to_thread(generate_latest, self._registry),
            token=settings.metrics_token,
        )
        async with ops.serving((settings.ops_host, settings.ops_port)) as ops_port, self._database() as database:
            sealer = await asyncio.to_thread(Sealer.from_file, settings.key)
            with closing(Passwords()) as passwords:
                await self._create_first_admin(database, passwords)
                await self._serve(database, passwords, sealer, ops_port)

    async def _serve(self, database: Database, passwords: Passwords, sealer: Sealer, ops_port: int) -> None:
        audit, issuers = AuditLog(sealer), Issuers(self._settings.addresses)
        sign_in = SignIn(database, passwords, sealer, audit)
        directory = Directory(database, sign_in)
        services = assemble_services(
            database=database,
            passwords=passwords,
            sealer=sealer,
            audit=audit,
            sign_in=sign_in,
            providers=ProviderLogin(database, sealer, sign_in, issuers),
            directory=directory,
        )
        duties = LeaderDuties(self._settings, self._connection, database, sealer, audit, registry=self._registry)
        address = f"{self._settings.host}:{self._settings.port}"
        async with Client(self._connection, user_agent=USER_AGENT) as client:
            tokens = ServiceTokens(client, audience=AUDIENCE, accounts=CALLERS)
            server = BackendServer(ServiceRegistry(services), tokens, metrics=self._registry)
            try:
                async with server.serving(address, self._certificate) as port:
                    self._state = "ready"
                    log.info("serving", port=port, ops_port=ops_port)
                    try:
                        await self._run_tasks(database, duties)
                    finally:
                        self._state = "stopping"
                        directory.end()
            finally:
                await issuers.close()

    async def _run_tasks(self, database: Database, duties: LeaderDuties) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._certificate.follow())
            if self._settings.first_password is not None:
                tasks.create_task(first_run.remove_password_file_when_changed(database, self._settings.first_password))
            if self._settings.first_token is not None:
                tasks.create_task(first_run.keep_token_extended(database, self._settings.first_token))
            if self._settings.has_replicas:
                elector = Elector(self._connection, LEASE, metrics=duties.metrics)
                tasks.create_task(elector.run(duties.run))
            else:
                tasks.create_task(duties.run(None))

    @asynccontextmanager
    async def _database(self) -> AsyncIterator[Database]:
        """The database, open and migrated. Waits for a server that does not answer yet."""
        database = Database(await asyncio.to_thread(self._settings.read_database_url))
        try:
            while True:
                try:
                    await database.open()
                    break
                except Unavailable:
                    self._state = "the database does not answer yet"
                    await asyncio.sleep(_RETRY_DELAY)
            yield database
        finally:
            await database.close()

    async def _create_first_admin(self, database: Database, passwords: Passwords) -> None:
        password, token = self._settings.first_password, self._settings.first_token
        if await database.read(users.exist):
            return
        if password is None:
            log.warning("no user can sign in: create the first administrator by restarting with --first-password")
        elif await first_run.create_admin(database, passwords, password=password, token=token):
            log.info("the first administrator was created", name=users.ADMIN)

    async def _readiness(self) -> tuple[bool, str]:
        return self._state == "ready", self._state


def assemble_services(
    *,
    database: Database,
    passwords: Passwords,
    sealer: Sealer,
    audit: AuditLog,
    sign_in: SignIn,
    providers: ProviderLogin,
    directory: Directory,
    clock: Now = now,
) -> dict[str, object]:
    """All services by their full names."""
    public = (
        Sessions(database, sign_in, providers, clock=clock),
        CurrentUser(database, sign_in, clock=clock),
        Users(database, passwords, sign_in, clock=clock),
        Groups(database, clock=clock),
        Roles(database, clock=clock),
        Bindings(database, clock=clock),
        Workspaces(database, clock=clock),
        Folders(database, clock=clock),
        Webhooks(database, sealer),
        IdentityProviders(database, sealer, clock=clock),
        Audits(database, audit),
    )
    internal = (directory, AuditTrail(database, audit, clock=clock))
    return {
        f"{package}.{type(service).__name__}": service
        for package, some in ((_PUBLIC_PACKAGE, public), (_INTERNAL_PACKAGE, internal))
        for service in some
    }
