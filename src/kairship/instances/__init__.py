"""Everything that knows how to run, reach and change a Karmada instance.

drivers                 create, upgrade, back up and delete instances, or adopt existing ones
membership              joins clusters to an instance and removes them again
pool                    one client for every instance and every registered cluster, by name
credentials             what the credential in a kubeconfig says of itself, and how it renews itself
account_tokens, personal_kubeconfigs
                        tokens of service accounts, and kubeconfigs for users made of them
access_review           which permissions an identity lacks in a cluster
"""
