"""The namespace of the plane's own objects that are not of our kinds: Secrets, leases and service accounts."""

NAMESPACE = "kairship-system"

KUBECONFIG = "kubeconfig"
"""The key of a Secret that contains a kubeconfig."""

ADOPTS_LABEL = "kairship.io/adopts"
"""The label of a Secret that the plane created from the kubeconfig with which an instance or cluster was adopted."""
