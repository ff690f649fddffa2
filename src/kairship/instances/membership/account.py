"""Karmada's access to a member: two service accounts with permanent tokens, and a role.

Karmada stores tokens and never renews them, so they are permanent. The role allows everything, because Karmada applies
whatever users propagate. An annotation on the account says which instance uses it: a member belongs to one instance,
under one name. Two memberships would share the namespace and the impersonator, and leaving one would break the other.
"""

import base64

from kairship.instances.drivers.driver import DriverError
from kairship.instances.drivers.polling import until
from kairship.instances.membership.manifests import apply, manifest
from kairship.kube import AddressRule, Client, Connection, NotFound, Object, Resource, kinds
from kairship.kube.cluster_identity import cluster_identity

NAMESPACE = "karmada-cluster"
IMPERSONATOR = "karmada-impersonator"
# The annotation on the account in the member with the identity of the instance that uses it.
USED_BY = "kairship.io/instance"
PATIENCE = 30.0
_VERIFY_TIMEOUT = 10.0
_SELF = Resource.of("authentication.k8s.io/v1", "selfsubjectreviews", kind="SelfSubjectReview", namespaced=False)
_OF = "kubernetes.io/service-account.name"
_RBAC = "rbac.authorization.k8s.io"


def account_of(cluster: str) -> str:
    return f"karmada-{cluster}"


def role_of(cluster: str) -> str:
    return f"karmada-controller-manager:{account_of(cluster)}"


def secret_names(cluster: str) -> tuple[str, str]:
    """The Secrets in the instance with Karmada's tokens for the member: its own, and the impersonator's."""
    return cluster, f"{cluster}-impersonator"


async def accounts(member: Client) -> list[Object]:
    """Returns the service accounts of memberships in the member; each membership has one."""
    found = (await member.list(kinds.SERVICE_ACCOUNTS, namespace=NAMESPACE)).items
    return [item for item in found if item["metadata"]["name"] not in (IMPERSONATOR, "default")]


async def is_used_by(member: Client, cluster: str, instance_identity: str) -> bool:
    """Whether the account of this name in the member is free or used by that instance, and by no other."""
    try:
        found = await member.get(kinds.SERVICE_ACCOUNTS, account_of(cluster), namespace=NAMESPACE)
    except NotFound:
        return True
    return user_of(found) in (instance_identity, None)


def user_of(account: Object) -> str | None:
    """The identity of the instance that uses the account, if it says so."""
    user: str | None = account["metadata"].get("annotations", {}).get(USED_BY)
    return user


def token_secret(account: str, edition: str) -> str:
    """The Secret in the member with the token of an account. Tokens of two editions are valid at the same time."""
    return f"{account}-{edition}" if edition else account


async def apply_accounts(member: Client, cluster: str, instance_identity: str, *, edition: str = "") -> None:
    """Applies the namespace, the role, the accounts and the Secrets of their tokens in the member."""
    await apply(member, manifest("v1", "Namespace", NAMESPACE))
    account, role = account_of(cluster), role_of(cluster)
    everything = [
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
        {"nonResourceURLs": ["*"], "verbs": ["get"]},
    ]
    subject = {"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}
    reference = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role}
    objects = [
        manifest(f"{_RBAC}/v1", "ClusterRole", role, rules=everything),
        manifest(f"{_RBAC}/v1", "ClusterRoleBinding", role, roleRef=reference, subjects=[subject]),
    ]
    for name in (account, IMPERSONATOR):
        token_name = token_secret(name, edition)
        secret = manifest("v1", "Secret", token_name, NAMESPACE, type="kubernetes.io/service-account-token")
        secret["metadata"]["annotations"] = {_OF: name}
        holder = manifest("v1", "ServiceAccount", name, NAMESPACE)
        holder["metadata"]["annotations"] = {USED_BY: instance_identity}
        objects += [holder, secret]
    for item in objects:
        await apply(member, item)


async def wait_for_token(member: Client, account: str, *, edition: str = "") -> str:
    """Waits for the token that the member's controller puts into the Secret; returns it in Base64, as it is there."""
    found = ""

    async def issued() -> str | None:
        nonlocal found
        secret = await member.get(kinds.SECRETS, token_secret(account, edition), namespace=NAMESPACE)
        found = (secret.get("data") or {}).get("token", "")
        return None if found else "the member has not issued a token yet"

    await until(issued, what=f"a token for {account}", timeout=PATIENCE)
    return found


async def verify_token(
    reached_at: Connection, token: str, member_identity: str | None = None, *, addresses: AddressRule | None
) -> None:
    """Raises unless the member accepts the token at this address and, if given, has this identity."""
    plain = base64.b64decode(token).decode()
    connection = Connection(
        server=reached_at.server, ca=reached_at.ca, tls_server_name=reached_at.tls_server_name, token=plain
    )
    async with Client(connection, timeout=_VERIFY_TIMEOUT, max_connections=1, addresses=addresses) as client:
        if member_identity is None:
            await client.create(_SELF, {})
        elif await cluster_identity(client) != member_identity:
            raise DriverError(f"{reached_at.server} is not the cluster that is to join; check the endpoint")


async def earlier_tokens(member: Client, cluster: str, edition: str) -> list[Object]:
    """Returns the Secrets with tokens of the membership's accounts that are not of this edition."""
    current = {token_secret(account, edition) for account in (account_of(cluster), IMPERSONATOR)}
    return [
        secret
        for secret in (await member.list(kinds.SECRETS, namespace=NAMESPACE)).items
        if (secret["metadata"].get("annotations") or {}).get(_OF) in (account_of(cluster), IMPERSONATOR)
        and secret["metadata"]["name"] not in current
    ]
