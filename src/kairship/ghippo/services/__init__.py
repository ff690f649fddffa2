"""The services of global management: one class per service of the protos, one module each.

A method is a coroutine `(request, call)`; it raises `kairship.ghippo.errors`. Whether the caller may call it at all was
decided before, at the entrance; what remains here is what only the database knows: nobody gives away more than they
have.
"""

from kairship.ghippo.audit import AuditLog
from kairship.ghippo.database import Database
from kairship.ghippo.identifiers import Now, now
from kairship.ghippo.oidc import ProviderLogin
from kairship.ghippo.passwords import Passwords
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
from kairship.ghippo.sign_in import SignIn

_PACKAGE = "kairship.ghippo.v1alpha1"
_INTERNAL = "kairship.internal.v1"


def services(
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
    """All of them by their full names."""
    found = (
        Sessions(database, sign_in, providers, clock=clock),
        CurrentUser(database, sign_in, clock=clock),
        Users(database, passwords, sign_in, clock=clock),
        Groups(database, clock=clock),
        Roles(database, clock=clock),
        Bindings(database, clock=clock),
        Workspaces(database, clock=clock),
        Folders(database, clock=clock),
        Webhooks(database, sealer),
        IdentityProviders(database, sealer),
        Audits(database, audit),
    )
    for_our_own = (directory, AuditTrail(database, audit, clock=clock))
    return {
        f"{package}.{type(service).__name__}": service
        for package, some in ((_PACKAGE, found), (_INTERNAL, for_our_own))
        for service in some
    }
