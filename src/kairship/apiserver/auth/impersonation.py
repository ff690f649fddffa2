"""Who a caller is inside an instance: the user, and those of the user's groups that the instance knows."""

from functools import lru_cache

from kairship.kube import Impersonation
from kairship.resources import SubjectKind
from kairship.resources.access_binding import name_inside


@lru_cache(maxsize=4096)
def person_inside(user: str, groups: tuple[str, ...]) -> Impersonation:
    return Impersonation(
        user=name_inside(SubjectKind.USER, user),
        groups=tuple(name_inside(SubjectKind.GROUP, group) for group in groups),
    )
