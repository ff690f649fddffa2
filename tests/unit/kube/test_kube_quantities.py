"""Quantities are added exactly and formatted as Kubernetes does."""

from decimal import Decimal

import pytest

from kairship.kube.quantities import add_up, as_quantities, parse_quantity


@pytest.mark.parametrize(
    ("resource", "amounts", "total"),
    [
        ("cpu", ["500m", "1", "0.25"], "1750m"),
        ("cpu", ["500m", "1500m"], "2"),
        ("cpu", ["1n", "1n"], "2n"),
        ("cpu", [], None),
        ("memory", ["1Gi", "1Mi"], "1025Mi"),
        ("memory", ["32Gi"] * 1000, "32000Gi"),
        ("memory", ["1"], "1"),
        ("memory", ["1000M"], "1000000000"),
        ("memory", ["0"], "0"),
        ("pods", ["110"] * 1024, "112640"),
        ("nvidia.com/gpu", ["8", "8"], "16"),
        ("hugepages-2Mi", ["2Mi"], "2Mi"),
        ("cpu", ["none", "1", "9" * 70], "1"),
    ],
)
def test_sums(resource: str, amounts: list[str], total: str | None) -> None:
    sums: dict[str, Decimal] = {}
    for amount in amounts:
        add_up(sums, {resource: amount})
    assert as_quantities(sums) == ({} if total is None else {resource: total})


def test_what_is_written_means_the_same() -> None:
    for text in ("1", "1500m", "17u", "3n", "5Gi", "1025Ki", "123456789", "0"):
        for resource in ("cpu", "memory"):
            sums: dict[str, Decimal] = {}
            add_up(sums, {resource: text})
            assert parse_quantity(as_quantities(sums)[resource]) == parse_quantity(text)


def test_what_is_smaller_than_anything_is_rounded_up() -> None:
    assert as_quantities({"cpu": Decimal("1e-12")}) == {"cpu": "1n"}
