"""The targets of roles, and the bindings of roles on them.

folders, workspaces    the tree that roles are inherited through, and the resources that workspaces hold
registered_instances   the instances that can be held and bound to, and
registered_clusters    the clusters that can be held; `registrations` is the controller that registers both
roles, bindings        built-in and custom roles, and their bindings to users and groups
built_in_roles         brings bindings to the permissions that built-in roles have in this release
effective              the bindings resolved to instances and namespaces, as receivers get them
escalation             the check that callers grant no more than they have
"""
