"""Being signed in at a plane from the command line.

signed_in   who one is, kept in a file that only its owner reads
rest        requests to the entrance
commands    login, approve, logout, whoami, token
kubeconfig  kubeconfig, and kubeconfig_file: what it writes to
"""
