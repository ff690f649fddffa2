"""One service for all objects of Kubernetes and Karmada in an instance, driven by a description of each kind."""
