"""The manifests that install our kinds in the global cluster.

    manifests            all CustomResourceDefinitions and admission policies, as objects and as files for deploy/crds
admission_policies   ValidatingAdmissionPolicies, for refusals that depend on other objects
service_account      a ServiceAccount with its RBAC, for the plane's own processes
"""
