"""The targets of roles, and the bindings of roles on them.

folders, workspaces    the tree that roles are inherited through, and the resources that workspaces hold
registered_instances   the instances that can be held and bound to; `registrations` is the controller that registers
                       them
roles, bindings        built-in and custom roles, and their bindings to users and groups
effective              the bindings resolved to instances and namespaces, as receivers get them
escalation             the check that callers grant no more than they have
"""
