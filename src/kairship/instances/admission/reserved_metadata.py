"""Labels and annotations by which Karmada and the plane recognise what belongs to what.

A policy finds the objects that it has claimed, and a binding its Works, by identifiers in labels and by names in
annotations. A person who wrote them could put an object under the policy of another namespace, or have Karmada let go
of objects of others. Karmada writes these keys itself; a person may keep them and drop them, and nothing else.
"""

from kairship.instances.admission.people import PEOPLE
from kairship.instances.admission.policy import Policy, Target, Validation

# Of Karmada's keys a person may set those that only concern the object itself, such as its conflict resolution.
_KEYS = (
    "^((cluster)?propagationpolicy|(cluster)?resourcebinding|resourcetemplate|multiclusterservice)[.]karmada[.]io/"
    "|^work[.]karmada[.]io/(name|namespace|permanent-id)$"
    "|^karmada[.]io/managed$"
    "|(^|[.])kairship[.]io/"
)
# Karmada's webhook gives a new policy its identifier before admission policies see it, whatever its author wrote there.
_IS_NEW_IDENTIFIER = (
    "(oldObject == null && request.resource.group in ['policy.karmada.io', 'networking.karmada.io']"
    " && key.endsWith('/permanent-id'))"
)


def _are_kept(field: str) -> str:
    before = f"(oldObject != null && has(oldObject.metadata.{field}) ? oldObject.metadata.{field} : {{}})"
    return (
        f"!has(object.metadata.{field}) || object.metadata.{field}.all(key,"
        f" !key.matches('{_KEYS}') || {_IS_NEW_IDENTIFIER}"
        f" || (key in {before} && {before}[key] == object.metadata.{field}[key]))"
    )


_MESSAGE = (
    "metadata.{field}: keys of Karmada's policies, bindings and Works, and those of kairship.io, are written by "
    "Karmada and the plane alone; remove them from the object that you send"
)

POLICIES = (
    Policy(
        name="kairship-reserved-metadata",
        targets=(Target("*", ("*",)),),
        conditions=PEOPLE | {"object": "object != null && has(object.metadata)"},
        validations=tuple(
            Validation(_are_kept(field), _MESSAGE.format(field=field)) for field in ("labels", "annotations")
        ),
    ),
)
