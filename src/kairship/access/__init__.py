"""Who may do what: the permission table and the authoriser.

    table        every permission: the least role that has it, its RBAC rules, its words in the catalogue
    proxy        the permission that a request of Kubernetes itself needs
    Authoriser   decides from memory; `Gate` applies it to methods of the API, `Feed` keeps it up to date
    Caller       who asks: a user with groups, and perhaps a token that is for less
    Identities   who there is: users, groups, access tokens, keys of session tokens (`session_tokens`)
    delivery     how bindings come from global management, signed; `BindingStore` keeps them as custom resources

Everything runs in one event loop. Nothing but the feed does input or output.
"""

from kairship.access.authoriser import Authoriser, KnownInstances
from kairship.access.bindings import Binding
from kairship.access.callers import Caller
from kairship.access.catalogue import products
from kairship.access.decisions import Explanation, Extent, Verdict
from kairship.access.feed import Feed
from kairship.access.freshness import Freshness
from kairship.access.gate import Gate
from kairship.access.holdings import Holdings
from kairship.access.identities import Ended, Identities, Identity, Token
from kairship.access.proxy import Attributes, Everyone, permission_for, permission_for_path, permission_to_find
from kairship.access.roles import Role
from kairship.access.rules import Rule
from kairship.access.storing import BindingStore
from kairship.access.table import Permission, permissions, permissions_of

__all__ = [
    "Attributes",
    "Authoriser",
    "Binding",
    "BindingStore",
    "Caller",
    "Ended",
    "Everyone",
    "Explanation",
    "Extent",
    "Feed",
    "Freshness",
    "Gate",
    "Holdings",
    "Identities",
    "Identity",
    "KnownInstances",
    "Permission",
    "Role",
    "Rule",
    "Token",
    "Verdict",
    "permission_for",
    "permission_for_path",
    "permission_to_find",
    "permissions",
    "permissions_of",
    "products",
]
