"""The credentials of clusters.

kubeconfigs   makes a connection of a kubeconfig or a token, and refuses what must not be used
secrets       the Secrets in the plane's namespace, which alone hold credentials
renewal       the controller that renews credentials that can renew themselves (`kairship.instances.credentials`)
janitor       the controller that removes Secrets that belong to no Cluster
"""
