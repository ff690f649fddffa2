"""The catalogue of permissions as `Product` objects, made from the table."""

from kairship.access.catalogue.table import Permission, permissions
from kairship.resources.product import Action, ProductSpec, ResourceType

_TITLES = {"kairship": "Kairship", "kpanda": "Container management", "ghippo": "Global management"}


def products() -> dict[str, ProductSpec]:
    """Products by name, with their resource types in the order of the table."""
    found: dict[str, dict[str, list[Permission]]] = {}
    for permission in permissions().values():
        if permission.role is not None:
            found.setdefault(permission.product, {}).setdefault(permission.resource, []).append(permission)
    return {
        product: ProductSpec(
            display_name=_TITLES[product],
            resource_types=tuple(
                ResourceType(name=name, actions=tuple(_action(permission) for permission in each))
                for name, each in types.items()
            ),
        )
        for product, types in found.items()
    }


def _action(permission: Permission) -> Action:
    return Action(name=permission.action, description=f"Can {permission.about}.")
