"""The field selector by which namespaces are left out, beside whatever selector the caller has written."""

from urllib.parse import parse_qsl

import pytest

from kairship.apiserver.proxy.request.field_selector import selector_without, without_namespaces
from kairship.index import parse_fields
from kairship.index.selectors import BadSelectorError, FieldRequirement

LEFT_OUT = ("kube-system", "karmada-es-oregon")
TERMS = "metadata.namespace!=kube-system,metadata.namespace!=karmada-es-oregon"
REQUIRED = tuple(FieldRequirement("metadata.namespace", name, equal=False) for name in LEFT_OUT)


@pytest.mark.parametrize(
    ("query", "own", "others"),
    [
        ("", "", ""),
        ("limit=5&continue=a%2Bb", "", "limit=5&continue=a%2Bb"),
        ("fieldSelector=metadata.name%3Dx", "metadata.name=x", ""),
        ("fieldSelector=metadata.name=x&watch=1", "metadata.name=x", "watch=1"),
        ("watch=1&fieldSelector=spec.nodeName%3Da%2Cmetadata.name!%3Db", "spec.nodeName=a,metadata.name!=b", "watch=1"),
        # The caller's own selector may name the same namespaces: all terms have to hold.
        ("fieldSelector=metadata.namespace=kube-system", "metadata.namespace=kube-system", ""),
        ("fieldSelector=", "", ""),
        ("fieldSelector", "", ""),
        ("fieldSelector=,,", ",,", ""),
        # A server takes the first of several values, however their names are encoded.
        ("fieldSelector=a%3Db&limit=1&fieldSelector=c%3Dd", "a=b", "limit=1"),
        ("field%53elector=a%3Db&fieldSelector=c%3Dd", "a=b", ""),
        ("fieldSelector&fieldSelector=c%3Dd", "", ""),
        # These are other parameters.
        (
            "FieldSelector=a%3Db&+fieldSelector=c&fieldselector=d",
            "",
            "FieldSelector=a%3Db&+fieldSelector=c&fieldselector=d",
        ),
        ("labelSelector=a+in+(b%2Cc)&&x=%FF", "", "labelSelector=a+in+(b%2Cc)&&x=%FF"),
    ],
)
def test_the_terms_stand_before_what_the_caller_wrote(query: str, own: str, others: str) -> None:
    rewritten = without_namespaces(query, LEFT_OUT)
    assert rewritten.isascii()
    *kept, last = rewritten.split("&")
    assert "&".join(kept) == others
    assert parse_qsl(last) == [("fieldSelector", f"{TERMS},{own}" if own else TERMS)]
    assert [value for name, value in parse_qsl(rewritten) if name == "fieldSelector"] == [
        selector_without(LEFT_OUT, own)
    ]


@pytest.mark.parametrize("own", ["metadata.name=x", "metadata.namespace=kube-system", ",", "a!=b\\,c", "a=\\=", ""])
def test_every_term_is_required(own: str) -> None:
    assert parse_fields(selector_without(LEFT_OUT, own)) == (*REQUIRED, *parse_fields(own))


@pytest.mark.parametrize("own", ["a=\\", "\\", "a=b,\\", "a=b=c", "a"])
def test_a_selector_that_is_refused_is_refused_still(own: str) -> None:
    """No escape in it makes the terms part of a value."""
    for selector in (own, selector_without(LEFT_OUT, own)):
        with pytest.raises(BadSelectorError):
            parse_fields(selector)
