"""The Works of a member, in which Karmada keeps what it applies there. Pure functions."""

from kairship.instances.membership.manifests import Manifest


def execution_namespace(cluster: str) -> str:
    """The namespace in which Karmada keeps the Works of a member."""
    return f"karmada-es-{cluster}"


def requeue_patch(*, suspended: bool | None) -> Manifest:
    """Returns a patch that makes Karmada requeue a Work that it has dropped or retries too rarely.

    Karmada requeues a Work when its generation changes. This field can change without any other effect, because
    `suspendDispatching: false` means the same as no value. `suspended` is the present value.
    """
    return {"spec": {"suspendDispatching": None if suspended is False else False}}
