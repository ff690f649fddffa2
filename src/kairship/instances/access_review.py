"""Finds out which permissions an identity lacks in a cluster, by SelfSubjectAccessReviews."""

import asyncio
from collections.abc import Sequence

import msgspec

from kairship.kube import Client, kinds

READ = ("get", "list", "watch")
WRITE = (*READ, "create", "update", "patch", "delete")


class Right(msgspec.Struct, frozen=True):
    """Verbs on one resource, and why they are needed. A subresource is written as in RBAC: `serviceaccounts/token`."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    purpose: str

    def __str__(self) -> str:
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{', '.join(self.verbs)} {resource} ({self.purpose})"


class _Verdict(msgspec.Struct):
    allowed: bool = False


class _Review(msgspec.Struct):
    status: _Verdict


async def missing_rights(client: Client, needed: Sequence[Right]) -> Sequence[Right]:
    """Returns what the identity of `client` lacks of `needed`.

    Each verb is one review, because only the server itself knows how it decides.
    """
    try:
        async with asyncio.TaskGroup() as tasks:
            answers = {
                (right, verb): tasks.create_task(_allowed(client, right, verb))
                for right in needed
                for verb in right.verbs
            }
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures  # they all come from one server, so one says enough
    lacking = []
    for right in needed:
        refused = tuple(verb for verb in right.verbs if not answers[right, verb].result())
        if refused:
            lacking.append(msgspec.structs.replace(right, verbs=refused))
    return lacking


async def _allowed(client: Client, right: Right, verb: str) -> bool:
    resource, _, subresource = right.resource.partition("/")
    attributes = {"group": right.group, "resource": resource, "subresource": subresource, "verb": verb}
    review = await client.typed(_Review).create(
        kinds.SELF_SUBJECT_ACCESS_REVIEWS, {"spec": {"resourceAttributes": attributes}}
    )
    return review.status.allowed
