"""Which namespaces are reserved, and how an operator reserves further ones."""

import pytest

from kairship.resources import is_reserved, reserve, reserved_names, reserved_namespaces


@pytest.mark.parametrize(
    ("namespace", "reserved"),
    [
        *((name, True) for name in ("kube-system", "kube-public", "kube-node-lease")),
        *((name, True) for name in ("karmada-system", "karmada-cluster", "kairship-system", "karmada-es-oregon")),
        *((name, False) for name in ("default", "kube", "kube-system-2", "karmada-es", "karmada", "")),
    ],
)
def test_namespaces_of_kubernetes_karmada_and_the_plane(namespace: str, reserved: bool) -> None:
    assert is_reserved(namespace) is reserved


def test_an_operator_reserves_further_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reserved_namespaces, "_names", set(reserved_namespaces.RESERVED))
    reserve(("vault", "kube-system"))
    assert is_reserved("vault")
    assert reserved_names() == tuple(sorted({"vault", *reserved_namespaces.RESERVED}))
