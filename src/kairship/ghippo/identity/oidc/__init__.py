"""Sign-in with OpenID Connect: the authorization code flow with PKCE, state and nonce.

`issuer` talks to a provider, `login` takes a user through the flow, `claims` finds or creates the user of an ID token.
"""

from kairship.ghippo.identity.oidc.issuer import Issuers, ProviderUnreachable
from kairship.ghippo.identity.oidc.login import ProviderLogin

__all__ = ["Issuers", "ProviderLogin", "ProviderUnreachable"]
