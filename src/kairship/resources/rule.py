"""What a schema cannot say with types alone: CEL rules that the API server itself enforces."""

import msgspec


class Rule(msgspec.Struct, frozen=True):
    """An expression that must hold, and the sentence that somebody reads when it does not.

    A rule that mentions `oldSelf` compares with the stored object, so it holds from the second write on.
    """

    expression: str
    message: str


def immutable(field: str, why: str, *, optional: bool = False) -> Rule:
    """`field` keeps the value that it was created with; an `optional` one also if that is none."""
    expression = f"self.{field} == oldSelf.{field}"
    if optional:
        expression = f"has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || {expression})"
    return Rule(expression, f"{field} cannot change: {why}")


def named_by_label(what: str, *, longest: int) -> Rule:
    """Names are DNS labels: those of custom resources could be longer, and have dots."""
    return Rule(
        f"self.metadata.name.size() <= {longest} && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
        f"the name of {what} has at most {longest} characters: lower case letters, digits and '-'",
    )
