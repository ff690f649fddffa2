"""Works, in which Karmada keeps what goes into a member, as far as we deal with them. Pure."""

from kairship.instances.membership.manifests import Manifest


def execution_namespace(cluster: str) -> str:
    """Where Karmada keeps the Works of a member."""
    return f"karmada-es-{cluster}"


def shown_again(*, suspended: bool | None) -> Manifest:
    """A patch by which Karmada hears again of a Work that it has dropped, or tries too seldom.

    It does when the generation changes. Of all fields this one means nothing else: `suspended` is what it is now, and a
    dispatch that is not suspended is one of which nothing is said.
    """
    return {"spec": {"suspendDispatching": None if suspended is False else False}}
