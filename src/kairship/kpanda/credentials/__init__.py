"""What opens a cluster: the form in which it is accepted, and the Secret that keeps it.

form      from a kubeconfig or a token to a connection; refuses what must not be used
secrets   the Secrets in the plane's namespace, which are the only place where a credential is
renewing  the controller that renews those that can renew themselves (`kairship.instances.credentials`)
janitor   the controller that removes those that belong to nobody
"""
