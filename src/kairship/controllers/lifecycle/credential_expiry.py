"""Shows when the credential of an instance ends, and renews it in time where the plane owns it.

The steps of the driver `local` renew its certificates. If a Karmada was adopted with the token of a ServiceAccount and
the plane made its Secret (`AdoptInstance`), another token is requested at half of the token's life; the old token stays
valid until its own end. A credential in any other Secret is renewed by its owner, whom the condition warns in time.
"""

import base64
import datetime as dt
from math import inf

from kairship.controllers.lifecycle.operation import InstanceOperation
from kairship.instances.credentials.expiry import expires_at
from kairship.instances.credentials.self_renewing import OwnToken, own_token
from kairship.instances.drivers import DriverError
from kairship.kube import Connection, KubeError, NotFound, kinds
from kairship.reconcile import MetadataOnly
from kairship.resources import ADOPTS_LABEL, KUBECONFIG, NAMESPACE, ConditionStatus, InstanceCondition, InstanceReason
from kairship.supervisor import SupervisorError

ENDS_SOON = dt.timedelta(days=30)

_KIND = InstanceCondition.CREDENTIALS_VALID
_RETRY = 300.0
_WITH_EVENT = frozenset({InstanceReason.EXPIRING, InstanceReason.EXPIRED})


async def renew_if_due(operation: InstanceOperation) -> float:
    """Renews the credential if that is due, and writes when it ends. Returns for how many seconds there is nothing to
    do.

    A missing or unusable credential is not reported here: the operations that need it do so.
    """
    try:
        connection = await operation.driver.connection(operation.uid)
    except (DriverError, SupervisorError):
        operation.check_term()
        return inf
    now, problem = operation.context.clock.wall(), ""
    token = own_token(connection)
    secret = await _own_secret(operation, token)
    if secret is None:
        token = None  # the owner of the Secret renews it
    elif token is not None and token.due <= now < token.ends:
        try:
            connection = await _renew(operation, secret) or connection
            token = own_token(connection)
        except (DriverError, KubeError) as error:
            operation.check_term()
            problem = str(error)
    ends = expires_at(connection)
    renewed = token is not None or not operation.adopts
    status, reason, message = expiry_condition(ends, now=now, kept=_kept(operation), renewed=renewed, problem=problem)
    if reason in _WITH_EVENT and not operation.writer.has_reason(_KIND, reason):
        operation.writer.record_event(reason, message, warning=True)
    operation.writer.set_condition(_KIND, status, reason, message)
    await operation.writer.write()
    return _RETRY if problem else _seconds_until_due(ends, token, now)


def expiry_condition(
    ends: dt.datetime | None, *, now: dt.datetime, kept: str, renewed: bool, problem: str = ""
) -> tuple[ConditionStatus, InstanceReason, str]:
    """The condition of a credential that ends at `ends`.

    `kept` says where the credential is, `renewed` that the plane renews it before its end, and `problem` why it could
    not be renewed.
    """
    if ends is None:
        return "True", InstanceReason.VALID, "the credential does not say when it ends"
    date = f"{ends:%Y-%m-%d %H:%M} UTC"
    if ends <= now:
        return "False", InstanceReason.EXPIRED, f"the credential ended on {date}: replace {kept}"
    if problem:
        message = f"the credential ends on {date} and could not be renewed ({problem}): replace {kept} before"
        return "True", InstanceReason.EXPIRING, message
    if renewed:
        return "True", InstanceReason.VALID, f"the credential ends on {date} and is renewed before"
    if ends - now < ENDS_SOON:
        return "True", InstanceReason.EXPIRING, f"the credential ends on {date}: replace {kept} before"
    return "True", InstanceReason.VALID, f"the credential ends on {date}"


def _seconds_until_due(ends: dt.datetime | None, token: OwnToken | None, now: dt.datetime) -> float:
    """Seconds until the credential is due for renewal, ends soon, or has ended."""
    moments = [token.due] if token is not None else []
    moments += [ends - ENDS_SOON, ends] if ends is not None else []
    return min((max(1.0, (moment - now).total_seconds()) for moment in moments if moment > now), default=inf)


def _kept(operation: InstanceOperation) -> str:
    reference = operation.spec.kubeconfig_secret
    return f"the kubeconfig in Secret {NAMESPACE}/{reference.name}" if reference is not None else "its certificates"


async def _own_secret(operation: InstanceOperation, token: OwnToken | None) -> MetadataOnly | None:
    """The Secret with the token, if the plane made it."""
    reference = operation.spec.kubeconfig_secret
    if token is None or reference is None:
        return None
    try:
        found = await operation.context.client.typed(MetadataOnly).get(
            kinds.SECRETS, reference.name, namespace=NAMESPACE
        )
    except NotFound:
        return None
    return found if ADOPTS_LABEL in (found.metadata.labels or {}) else None


async def _renew(operation: InstanceOperation, secret: MetadataOnly) -> Connection | None:
    fresh = await operation.driver.renew_credential(operation.uid)
    if fresh is None:
        return None
    content = base64.b64encode(fresh.to_kubeconfig(name=operation.instance.name)).decode()
    # Only at the revision that was read: a credential that was put there meanwhile is newer.
    patch = {"metadata": {"resourceVersion": secret.metadata.resource_version}, "data": {KUBECONFIG: content}}
    await operation.context.client.patch(kinds.SECRETS, secret.metadata.name, patch, namespace=NAMESPACE)
    operation.context.log.info("the credential of an adopted Karmada was renewed")
    return fresh
