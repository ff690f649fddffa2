"""Checks a credential and its cluster, one check after the other.

A verification takes no longer than `Timeouts.whole`, whatever the server does. It keeps nothing, and changes nothing in
the cluster.
"""

import asyncio
import datetime as dt
import re
from collections.abc import Callable

import msgspec

from kairship.gen.kairship.kpanda.v1alpha1.cluster_pb import NodeCount
from kairship.gen.kairship.kpanda.v1alpha1.credential_pb import CheckResult, CheckType, Credential, Verification
from kairship.instances.access_review import Right, missing_rights
from kairship.instances.credentials.expiry import expires_at
from kairship.kpanda.credentials.kubeconfigs import read_credential
from kairship.kpanda.observation.client import observation_client
from kairship.kpanda.observation.nodes import sum_nodes
from kairship.kpanda.verification.checklist import CheckFailed, Checklist
from kairship.kpanda.verification.messages import ADDRESS_PASSED, ADDRESS_REFUSED, REJECTED, why_unreachable
from kairship.kube import (
    AddressRefused,
    AddressRule,
    Client,
    ConfigError,
    Connection,
    Forbidden,
    KubeError,
    Unauthorized,
)
from kairship.kube.cluster_identity import cluster_identity, is_karmada

OLDEST_VERSION = (1, 22)
SHORTEST_VALIDITY = dt.timedelta(minutes=10)
EXPIRES_SOON = dt.timedelta(days=30)

_READS = "reading the cluster's objects"
REQUIRED_RIGHTS = (
    Right("", "namespaces", ("get", "list"), "knowing which cluster it is"),
    Right("", "nodes", ("list", "watch"), "its state"),
    Right("", "pods", ("list", "watch"), "its state"),
)
OPTIONAL_RIGHTS = (Right("*", "*", ("list", "watch"), _READS),)
"""Without this right the cluster can be used, but the index lacks what the credential may not read."""

_VERSION = re.compile(r"v?(\d{1,4})\.(\d{1,4})[-+.\w]{0,50}", re.ASCII)

KnownAs = Callable[[str], str | None]
"""Returns the name under which the cluster with an identity is registered, if it is."""


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """The timeouts of a verification and of each of its calls, in seconds."""

    whole: float = 20.0
    call: float = 6.0


class Verified(msgspec.Struct, frozen=True):
    """The result of a verification, and the kubeconfig if it was accepted, which only the Secret may keep."""

    result: Verification
    kubeconfig: bytes | None = None

    def __repr__(self) -> str:
        return f"Verified(accepted={self.result.accepted})"

    @property
    def refusal(self) -> str:
        """Why the credential was not accepted, and what to do."""
        failed = (check.message for check in self.result.checks if check.result is CheckResult.FAILED)
        return next(failed, "")


class Verifier:
    def __init__(
        self, *, addresses: AddressRule, known_as: KnownAs, now: Callable[[], dt.datetime], timeouts: Timeouts
    ) -> None:
        self._addresses = addresses
        self._known_as = known_as
        self._now = now
        self._timeouts = timeouts

    async def verify(
        self, credential: Credential, *, endpoint: str = "", registered: str = "", identity: str = ""
    ) -> Verified:
        """`registered` is the name of the cluster that the credential is for, if that is registered already, and
        `identity` the identity that it had."""
        result = Verification()
        checks = Checklist()
        kubeconfig: bytes | None = None
        try:
            async with asyncio.timeout(self._timeouts.whole):
                kubeconfig, connection = await self._form(credential, endpoint, result, checks)
                async with observation_client(connection, self._addresses, timeout=self._timeouts.call) as client:
                    await self._connect(client, result, checks)
                    await self._rights(client, result, checks)
                    self._expiry(result, checks)
                    await self._identity(client, registered, identity, result, checks)
                    await self._extras(client, result)
        except CheckFailed as failure:
            checks.failed(failure)
        except TimeoutError:
            checks.timed_out(self._timeouts.whole)
        checks.write_to(result)
        return Verified(result, kubeconfig if result.accepted else None)

    async def _form(
        self, credential: Credential, endpoint: str, result: Verification, checks: Checklist
    ) -> tuple[bytes, Connection]:
        try:
            kubeconfig, connection = await read_credential(credential, endpoint=endpoint)
        except ConfigError as error:
            raise CheckFailed(CheckType.FORM, str(error)) from None
        result.endpoint = connection.server
        if (end := expires_at(connection)) is not None:
            result.expires_at = int(end.timestamp())
        checks.passed(CheckType.FORM, "the credential has a form that is accepted")
        return kubeconfig, connection

    async def _connect(self, client: Client, result: Verification, checks: Checklist) -> None:
        try:
            version = (await client.version()).git_version
        except AddressRefused:
            raise CheckFailed(
                CheckType.ADDRESS,
                ADDRESS_REFUSED,
            ) from None
        except Unauthorized:
            _reached(checks)
            raise self._rejected(result) from None
        except Forbidden:
            version = ""
        except KubeError as error:
            checks.passed(CheckType.ADDRESS, ADDRESS_PASSED)
            raise CheckFailed(CheckType.REACHABLE, why_unreachable(error, self._timeouts.call)) from None
        _reached(checks)
        found = _VERSION.fullmatch(version)
        # The first call that needs the credential shows whether it is accepted.
        try:
            result.id = await cluster_identity(client, timeout=self._timeouts.call)
        except Unauthorized:
            raise self._rejected(result) from None
        except Forbidden:
            pass  # the check of rights reports what is missing
        except KubeError as error:
            raise CheckFailed(CheckType.REACHABLE, why_unreachable(error, self._timeouts.call)) from None
        checks.passed(CheckType.ACCEPTED, "the cluster accepts the credential")
        if found is None:
            raise CheckFailed(CheckType.VERSION, "the server does not say which version of Kubernetes it is")
        result.kubernetes_version = version
        if (int(found[1]), int(found[2])) < OLDEST_VERSION:
            raise CheckFailed(
                CheckType.VERSION,
                f"Kubernetes {version} is older than v1.22, the oldest that is supported: upgrade it",
            )
        checks.passed(CheckType.VERSION, f"Kubernetes {version}")

    async def _rights(self, client: Client, result: Verification, checks: Checklist) -> None:
        try:
            lacking = await missing_rights(client, REQUIRED_RIGHTS)
            unread = await missing_rights(client, OPTIONAL_RIGHTS)
        except KubeError:
            raise CheckFailed(
                CheckType.RIGHTS, "the cluster does not say what the credential may do (SelfSubjectAccessReview)"
            ) from None
        result.missing_rights = [f"{verb} {right.resource}" for right in (*lacking, *unread) for verb in right.verbs]
        if lacking:
            words = ", ".join(f"{verb} {right.resource}" for right in lacking for verb in right.verbs)
            raise CheckFailed(CheckType.RIGHTS, f"the credential lacks rights: {words}; grant them, or use another")
        if unread:
            checks.warned(
                CheckType.RIGHTS,
                "the credential may not list and watch everything: what it may not read is missing in searches",
            )
        else:
            checks.passed(CheckType.RIGHTS, "the credential has the rights that are needed")

    def _rejected(self, result: Verification) -> CheckFailed:
        ended = result.expires_at and result.expires_at <= self._now().timestamp()
        return CheckFailed(CheckType.ACCEPTED, _ended(result.expires_at, "has ended") if ended else REJECTED)

    def _expiry(self, result: Verification, checks: Checklist) -> None:
        if not result.expires_at:
            checks.passed(CheckType.EXPIRY, "the credential does not say when it ends")
            return
        left = result.expires_at - self._now().timestamp()
        when = _date(result.expires_at)
        if left < SHORTEST_VALIDITY.total_seconds():
            raise CheckFailed(
                CheckType.EXPIRY, _ended(result.expires_at, "has ended" if left <= 0 else "ends in a few minutes")
            )
        if left < EXPIRES_SOON.total_seconds():
            checks.warned(CheckType.EXPIRY, f"the credential ends on {when}: replace it before")
        else:
            checks.passed(CheckType.EXPIRY, f"the credential is valid until {when}")

    async def _identity(
        self, client: Client, registered: str, identity: str, result: Verification, checks: Checklist
    ) -> None:
        if not result.id:
            raise CheckFailed(CheckType.IDENTITY, "the cluster does not show which one it is (namespace kube-system)")
        try:
            karmada = await is_karmada(client)
        except KubeError as error:
            raise CheckFailed(CheckType.REACHABLE, why_unreachable(error, self._timeouts.call)) from None
        if karmada:
            raise CheckFailed(
                CheckType.IDENTITY,
                "this is a control plane of Karmada and not a cluster: adopt it as an instance, or register one of its "
                "clusters",
            )
        known = self._known_as(result.id)
        if registered:
            if identity and result.id != identity:
                result.known_as = known or ""
                raise CheckFailed(
                    CheckType.IDENTITY,
                    f"this opens another cluster than {registered}: give a credential of the same cluster, or register "
                    "this one under a name of its own",
                )
            if known and known != registered:
                result.known_as = known
                raise CheckFailed(CheckType.IDENTITY, f"the cluster is registered already, as {known}")
        elif known:
            result.known_as = known
            raise CheckFailed(
                CheckType.IDENTITY, f"the cluster is registered already, as {known}: use that, or remove it first"
            )
        checks.passed(CheckType.IDENTITY, "the cluster is the one that it should be")

    async def _extras(self, client: Client, result: Verification) -> None:
        """Adds what a user wants to see before registering a cluster. The verification does not depend on it."""
        try:
            nodes = await sum_nodes(client, timeout=self._timeouts.call)
        except KubeError:
            return
        result.nodes = NodeCount(total=nodes.total, ready=nodes.ready)
        result.provider = nodes.provider


def _reached(checks: Checklist) -> None:
    checks.passed(CheckType.ADDRESS, ADDRESS_PASSED)
    checks.passed(CheckType.REACHABLE, "the server answers, and its certificate is trusted")


def _ended(at: int, word: str) -> str:
    return f"the credential {word} ({_date(at)}): use one that is valid for longer"


def _date(at: int) -> str:
    return f"{dt.datetime.fromtimestamp(at, dt.UTC):%Y-%m-%d %H:%M} UTC"
