"""How to connect to an API server, and as whom.

connection  the address, the trust and the identity of one server, as a value
kubeconfig  the kubeconfig file format
user        bearer tokens and impersonation
"""
