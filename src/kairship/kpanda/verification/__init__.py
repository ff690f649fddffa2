"""Verifies that a cluster can be used with a credential, before anything is kept.

verifier     the checks, in their order
checklist    the result of each check
messages     the messages about a server that cannot be used
"""

from kairship.kpanda.verification.verifier import EXPIRES_SOON, Timeouts, Verified, Verifier

__all__ = ["EXPIRES_SOON", "Timeouts", "Verified", "Verifier"]
