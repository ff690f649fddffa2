"""CEL validation rules, which the API server enforces, for constraints that types cannot express."""

import msgspec


class Rule(msgspec.Struct, frozen=True):
    """An expression that must be true, and the message that the client gets if it is not.

    A rule with `oldSelf` compares with the stored object, so it applies to updates and not to creation.
    """

    expression: str
    message: str


def immutable(field: str, why: str, *, optional: bool = False) -> Rule:
    """`field` keeps the value that it was created with. If it is `optional`, it also stays absent."""
    expression = f"self.{field} == oldSelf.{field}"
    if optional:
        expression = f"has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || {expression})"
    return Rule(expression, f"{field} cannot change: {why}")


def named_by_label(what: str, *, longest: int) -> Rule:
    """The name must be a DNS label. The API server itself would accept longer names, and names with dots."""
    return Rule(
        f"self.metadata.name.size() <= {longest} && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
        f"the name of {what} has at most {longest} characters: lower case letters, digits and '-'",
    )
