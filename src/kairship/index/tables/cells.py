"""Labels, selectors, containers and lists as the text that API servers print into cells."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

NONE = "<none>"
UNSET = "<unset>"
_SHOWN = 3


def labels_text(labels: Mapping[str, str] | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NONE


def selector_text(selector: Mapping[str, Any] | None) -> str:
    """A label selector as kubectl takes it; empty if it selects nothing or everything."""
    selector = selector or {}
    found = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    found += [(each["key"], _expression(each)) for each in selector.get("matchExpressions") or ()]
    return ",".join(text for _, text in sorted(found, key=lambda pair: pair[0]))


def _expression(expression: Mapping[str, Any]) -> str:
    key, values = expression["key"], ",".join(sorted(expression.get("values") or ()))
    match expression["operator"]:
        case "In":
            return f"{key} in ({values})"
        case "NotIn":
            return f"{key} notin ({values})"
        case "Exists":
            return str(key)
        case _:
            return f"!{key}"


def containers_of(template: Mapping[str, Any] | None) -> tuple[str, str]:
    """The names and the images of the containers of a pod template."""
    containers = ((template or {}).get("spec") or {}).get("containers") or ()
    return ",".join(each["name"] for each in containers), ",".join(each.get("image", "") for each in containers)


def first_few(texts: Sequence[str], *, empty: str = "") -> str:
    """The first texts, and how many more there are."""
    shown = ",".join(texts[:_SHOWN])
    return f"{shown} + {len(texts) - _SHOWN} more..." if len(texts) > _SHOWN else shown or empty


def access_modes(modes: Iterable[str] | None) -> str:
    short = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
    held = frozenset(modes or ())
    return ",".join(text for mode, text in short.items() if mode in held)


def condition(conditions: Iterable[Mapping[str, Any]] | None, kind: str) -> str | None:
    """The status of a condition; None if there is no such condition."""
    return next((str(each.get("status", "")) for each in conditions or () if each.get("type") == kind), None)
