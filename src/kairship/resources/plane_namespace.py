"""Where the plane keeps what is not one of its own kinds: Secrets, leases, service accounts."""

NAMESPACE = "kairship-system"

KUBECONFIG = "kubeconfig"
"""The key of a kubeconfig in a Secret."""

ADOPTS_LABEL = "kairship.io/adopts"
"""On a Secret that the plane itself made of the kubeconfig by which something is adopted."""
