"""Sign-in with OpenID Connect: the code flow with PKCE, state and nonce.

`issuer` talks to a provider, `login` takes a person through it, `identity` makes a user of what the provider says.
"""

from kairship.ghippo.oidc.issuer import Issuers
from kairship.ghippo.oidc.login import ProviderLogin

__all__ = ["Issuers", "ProviderLogin"]
