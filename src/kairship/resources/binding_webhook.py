"""Where bindings are delivered to the entrance, and what they are signed with: names that processes agree on."""

PATH = "/webhooks/bindings"
SECRET = "kairship-webhook"  # noqa: S105 - a name
"""The Secret that global management signs with and the entrance verifies with, in the plane's own namespace."""
CURRENT, PREVIOUS = "secret", "previous"
"""Its keys. The previous one is still good while it is being changed."""
