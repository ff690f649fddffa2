"""The catalogue of permissions, which is fixed at build time.

table               every permission, with the least role that has it and its RBAC rules
kinds, rules        the kinds of Kubernetes and Karmada that permissions are about, and the RBAC rules on them
markers             verbs in RBAC that only admission policies ask for
roles               the built-in roles
attributes          the permission that a request to a Kubernetes API needs
system_namespaces   the permission for the namespaces that Karmada keeps for itself
products            the catalogue as the `Product` objects that global management shows
"""
