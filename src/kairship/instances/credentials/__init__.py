"""What the credential in a kubeconfig says of itself.

expiry         when a certificate or token says that it ends
self_renewing  tokens that can be renewed with nothing but themselves
claims         what a JSON Web Token says
"""
