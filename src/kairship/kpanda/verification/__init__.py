"""Whether a cluster can be used with a credential, found out before anything is kept.

verifier     the checks, in their order
checklist    how each of them ended
wording      what people are told of a server that cannot be used
"""

from kairship.kpanda.verification.verifier import ENDS_SOON, Patience, Verified, Verifier

__all__ = ["ENDS_SOON", "Patience", "Verified", "Verifier"]
