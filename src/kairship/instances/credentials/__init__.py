"""What the credential in a kubeconfig says of itself. Nothing is verified here: the cluster does that.

expiry         when a client certificate or a token expires
self_renewing  service account tokens that can be renewed with nothing but themselves
claims         the claims of a JSON Web Token
"""
