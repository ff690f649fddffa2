"""The webhook controller of global management: bindings become RBAC inside the instances and their members.

`grants` gathers who holds what on an instance, `rules` says what a set of permissions means there, `desired` which
objects that makes, `works` how they reach a member (all pure functions); `writing` brings an instance to it, `sweeping`
looks into the members now and then, `report` tells each binding how far it is, `reconciler` puts them together.
"""

from kairship.controllers.access.reconciler import NAME, access_controller

__all__ = ["NAME", "access_controller"]
