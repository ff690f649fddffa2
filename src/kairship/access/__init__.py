"""Rights: who may do what on the platform, on an instance and in a namespace.

    catalogue        every permission: the least role that has it, its RBAC rules, its description; and the permission
                     that a request to a Kubernetes API needs
    bindings, scopes, callers
                     what a binding grants, where it grants it, and the caller whose rights are asked for
    grant_index      everything that bindings grant, indexed for lookups
    authoriser       `Authoriser` answers from memory; its answers are in `decisions`
    informer         `AccessInformer` keeps the authoriser up to date from the global cluster
    freshness        whether the data in memory is recent enough to decide with
    outdated_bindings
                     the bindings in memory that global management has replaced, as its directory says
    identities       users, groups, access tokens and the keys of session tokens (`session_tokens`), in memory
    delivery         the signed webhook protocol by which bindings arrive from global management; `BindingStore`
                     stores them as custom resources
    rights_service   the API service Rights, which explains decisions

Everything runs in one event loop. Only the informer and `BindingStore` do I/O, both with the global cluster's API
server; everything else answers from memory without awaiting.
"""

from kairship.access.authoriser import Authoriser, KnownInstances
from kairship.access.bindings import Binding
from kairship.access.callers import Caller
from kairship.access.catalogue.attributes import (
    AnyRight,
    Attributes,
    permission_for,
    permission_for_non_resource_path,
    permission_to_search,
)
from kairship.access.catalogue.products import products
from kairship.access.catalogue.roles import Role
from kairship.access.catalogue.rules import Rule
from kairship.access.catalogue.table import Permission, permissions, permissions_of
from kairship.access.decisions import Decision, Explanation, RbacScope
from kairship.access.delivery.binding_store import BindingStore
from kairship.access.freshness import Freshness
from kairship.access.grant_index import GrantIndex
from kairship.access.identities import Identities, Identity, Revocation, Token
from kairship.access.informer import AccessInformer
from kairship.access.outdated_bindings import OutdatedBindings

__all__ = [
    "AccessInformer",
    "AnyRight",
    "Attributes",
    "Authoriser",
    "Binding",
    "BindingStore",
    "Caller",
    "Decision",
    "Explanation",
    "Freshness",
    "GrantIndex",
    "Identities",
    "Identity",
    "KnownInstances",
    "OutdatedBindings",
    "Permission",
    "RbacScope",
    "Revocation",
    "Role",
    "Rule",
    "Token",
    "permission_for",
    "permission_for_non_resource_path",
    "permission_to_search",
    "permissions",
    "permissions_of",
    "products",
]
