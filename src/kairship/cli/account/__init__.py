"""The commands of a user who signs in to a plane.

session           the user's session, stored in a file that only its owner can read
rest_client       requests to the entrance
commands          `kairship login`, `approve`, `logout` and `whoami`
token             `kairship token`, kubectl's credential plugin
kubeconfig        `kairship kubeconfig`
kubeconfig_file   merging entries into the user's kubeconfig files
"""
