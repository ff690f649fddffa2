"""The access controller: AccessBindings become RBAC inside the instances and their members.

`grants` collects who holds which permissions on an instance, `rules` translates permissions into RBAC rules, `desired`
says which RBAC objects that makes, and `works` how Karmada brings them into a member; all of them are pure functions.
`rbac_writer` applies the objects to an instance, `orphan_sweep` repairs the members now and then, `work_requeue` makes
Karmada retry stuck Works, `binding_conditions` writes the status of the bindings, and `reconciler` combines them.
"""

from kairship.controllers.access.reconciler import access_controller

__all__ = ["access_controller"]
