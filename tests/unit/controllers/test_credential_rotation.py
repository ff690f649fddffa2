"""Old tokens of a member of an adopted Karmada are deleted only when nothing can use them any more."""

from typing import Any

from kairship.controllers.membership.token_rotation import HELD_BY, classify


def token(name: str, *, held_by: str | None = None) -> dict[str, Any]:
    return {"metadata": {"name": name, "annotations": {HELD_BY: held_by} if held_by else {}}}


def classified(holder: str | None, *tokens: dict[str, Any]) -> tuple[list[str], ...]:
    return tuple([each["metadata"]["name"] for each in kind] for kind in classify(list(tokens), holder))


def test_one_that_was_just_replaced_is_marked_and_stays() -> None:
    assert classified("first", token("old")) == (["old"], ["old"], [])


def test_it_stays_while_the_same_process_leads_and_goes_with_it() -> None:
    assert classified("first", token("old", held_by="first")) == ([], ["old"], [])
    assert classified("second", token("old", held_by="first"), token("new")) == (["new"], ["new"], ["old"])


def test_while_nobody_says_that_it_leads_nothing_goes() -> None:
    assert classified(None, token("old", held_by="first"), token("new")) == ([], ["old", "new"], [])
