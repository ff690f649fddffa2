"""Where the plane keeps what is not one of its own kinds: Secrets, leases, service accounts."""

NAMESPACE = "kairship-system"

KUBECONFIG = "kubeconfig"
"""The key of a kubeconfig in a Secret."""
