"""How long the credential of an instance lasts: shown with its date, and renewed in time where that is ours to do.

Certificates of the driver `local` are renewed by its steps. A Karmada that was adopted with the token of a
ServiceAccount is asked for another one at half of the token's life, if its Secret was made here (`AdoptInstance`); the
old one stays valid to its own end. What others keep, they renew, and are told in time.
"""

import base64
import datetime as dt
from math import inf

from kairship.controllers.lifecycle.work import Work
from kairship.instances.credentials.expiry import expires_at
from kairship.instances.credentials.self_renewing import OwnToken, own_token
from kairship.instances.drivers import DriverError
from kairship.kube import Connection, KubeError, NotFound, kinds
from kairship.reconcile import MetadataOnly
from kairship.resources import ADOPTS_LABEL, KUBECONFIG, NAMESPACE, ConditionStatus, InstanceCondition, InstanceReason
from kairship.supervisor import SupervisorError

ENDS_SOON = dt.timedelta(days=30)

_KIND = InstanceCondition.CREDENTIALS_VALID
_AGAIN = 300.0
_ANNOUNCED = frozenset({InstanceReason.EXPIRING, InstanceReason.EXPIRED})


async def keep(work: Work) -> float:
    """Renew the credential if it is time to, and say when it ends. Returns for how many seconds there is nothing to do.

    That there is no credential, or none that can be used, is told by those who need it.
    """
    try:
        connection = await work.driver.connection(work.uid)
    except (DriverError, SupervisorError):
        work.check_term()
        return inf
    now, problem = work.context.clock.wall(), ""
    token = own_token(connection)
    secret = await _own_secret(work, token)
    if secret is None:
        token = None  # what others keep, they renew
    elif token is not None and token.due <= now < token.ends:
        try:
            connection = await _renew(work, secret) or connection
            token = own_token(connection)
        except (DriverError, KubeError) as error:
            work.check_term()
            problem = str(error)
    ends = expires_at(connection)
    renewed = token is not None or not work.adopts
    status, reason, message = judged(ends, now=now, kept=_kept(work), renewed=renewed, problem=problem)
    if reason in _ANNOUNCED and not work.journal.gives(_KIND, reason):
        work.journal.announce(reason, message, warning=True)
    work.journal.state(_KIND, status, reason, message)
    await work.journal.write()
    return _AGAIN if problem else _calm(ends, token, now)


def judged(
    ends: dt.datetime | None, *, now: dt.datetime, kept: str, renewed: bool, problem: str = ""
) -> tuple[ConditionStatus, InstanceReason, str]:
    """`kept` is where the credential is, `renewed` that it is made anew before its end, `problem` what keeps it."""
    if ends is None:
        return "True", InstanceReason.VALID, "it does not say when it ends"
    date = f"{ends:%Y-%m-%d %H:%M} UTC"
    if ends <= now:
        return "False", InstanceReason.EXPIRED, f"it ended on {date}: replace {kept}"
    if problem:
        message = f"it ends on {date} and could not be renewed ({problem}): replace {kept} before"
        return "True", InstanceReason.EXPIRING, message
    if renewed:
        return "True", InstanceReason.VALID, f"it ends on {date} and is renewed before"
    if ends - now < ENDS_SOON:
        return "True", InstanceReason.EXPIRING, f"it ends on {date}: replace {kept} before"
    return "True", InstanceReason.VALID, f"it ends on {date}"


def _calm(ends: dt.datetime | None, token: OwnToken | None, now: dt.datetime) -> float:
    """Until something about the credential is another: it is to be renewed, ends soon, has ended."""
    moments = [token.due] if token is not None else []
    moments += [ends - ENDS_SOON, ends] if ends is not None else []
    return min((max(1.0, (moment - now).total_seconds()) for moment in moments if moment > now), default=inf)


def _kept(work: Work) -> str:
    reference = work.spec.kubeconfig_secret
    return f"the kubeconfig in Secret {NAMESPACE}/{reference.name}" if reference is not None else "its certificates"


async def _own_secret(work: Work, token: OwnToken | None) -> MetadataOnly | None:
    """The Secret with the token, if it was made here."""
    reference = work.spec.kubeconfig_secret
    if token is None or reference is None:
        return None
    try:
        found = await work.context.client.get(kinds.SECRETS, reference.name, namespace=NAMESPACE, as_type=MetadataOnly)
    except NotFound:
        return None
    return found if ADOPTS_LABEL in (found.metadata.labels or {}) else None


async def _renew(work: Work, secret: MetadataOnly) -> Connection | None:
    fresh = await work.driver.renewed(work.uid)
    if fresh is None:
        return None
    content = base64.b64encode(fresh.to_kubeconfig(name=work.instance.name)).decode()
    # Only over what it was made of: a credential that somebody has put there meanwhile is newer.
    patch = {"metadata": {"resourceVersion": secret.metadata.resource_version}, "data": {KUBECONFIG: content}}
    await work.context.client.patch(kinds.SECRETS, secret.metadata.name, patch, namespace=NAMESPACE)
    work.context.log.info("the credential of an adopted Karmada was renewed")
    return fresh
