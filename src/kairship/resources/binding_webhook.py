"""The path and the Secret of the webhook by which ghippo delivers access bindings to the entrance."""

PATH = "/webhooks/bindings"
SECRET = "kairship-webhook"  # noqa: S105 - a name
"""The Secret, in the plane's own namespace, with which ghippo signs deliveries and the entrance verifies them."""
CURRENT, PREVIOUS = "secret", "previous"
"""The keys of the Secret. The previous value is still accepted while the secret is being rotated."""
