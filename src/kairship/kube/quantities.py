"""Parses, adds and formats Kubernetes quantities: 500m, 1.5, 2Gi, 1e3."""

from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal, InvalidOperation

_SUFFIXES = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "T": Decimal(10**12),
    "P": Decimal(10**15),
    "E": Decimal(10**18),
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
    "Ti": Decimal(2**40),
    "Pi": Decimal(2**50),
    "Ei": Decimal(2**60),
}
# No quantity of Kubernetes is longer, and the exponent of a longer one could be chosen to fill memory.
_LONGEST = 64
_LARGEST = Decimal(2**63 - 1)


def parse_quantity(text: str) -> Decimal | None:
    """Returns the number that a quantity stands for; None if the text is not a quantity."""
    if not text or len(text) > _LONGEST:
        return None
    suffix = next((each for each in (text[-2:], text[-1:]) if each in _SUFFIXES), "")
    number = text.removesuffix(suffix)
    try:
        amount = Decimal(number) * _SUFFIXES.get(suffix, Decimal(1))
    except InvalidOperation:
        return None
    return amount if amount.is_finite() and abs(amount) <= _LARGEST else None


def add_up(sums: dict[str, Decimal], quantities: Mapping[str, str]) -> None:
    """Adds quantities by resource name, exactly. A text that is not a quantity adds nothing."""
    for name, text in quantities.items():
        amount = parse_quantity(text)
        if amount is not None:
            sums[name] = sums.get(name, Decimal(0)) + amount


def as_quantities(sums: Mapping[str, Decimal]) -> dict[str, str]:
    """Formats amounts by resource name: memory and storage with binary suffixes, all others with decimal ones."""
    return {name: _written(amount, binary=_is_binary(name)) for name, amount in sorted(sums.items())}


def _is_binary(resource: str) -> bool:
    return resource in {"memory", "ephemeral-storage", "storage"} or resource.startswith("hugepages-")


def _written(amount: Decimal, *, binary: bool) -> str:
    """Returns the shortest form that is exact."""
    for suffix in ("", "m", "u", "n"):
        whole = amount / _SUFFIXES.get(suffix, Decimal(1))
        if whole == whole.to_integral_value():
            break
    else:
        whole = whole.to_integral_value(ROUND_CEILING)  # as Kubernetes does, which has no smaller unit
    if binary and not suffix and whole:
        for larger in ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki"):
            if whole % _SUFFIXES[larger] == 0:
                return f"{int(whole / _SUFFIXES[larger])}{larger}"
    return f"{int(whole)}{suffix}"
