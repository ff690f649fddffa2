"""The ``external`` driver: a Karmada that its owner runs elsewhere, adopted by kubeconfig.

driver           implements the protocol: the checks of an adoption, and little else
identity         whether a server is a Karmada, and of which release
required_rights  the permissions that the plane needs in it
claim            the ConfigMap in the Karmada that says which instance has adopted it
health           the health of its components, as far as its API shows
"""
