"""The condition of a credential that ends."""

import datetime as dt

import pytest

from kairship.controllers.lifecycle.credential_expiry import expiry_condition
from kairship.resources import InstanceReason

NOW = dt.datetime(2027, 1, 1, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("days", "renewed", "problem", "expected"),
    [
        (None, False, "", ("True", InstanceReason.VALID, "the credential does not say when it ends")),
        (0, True, "", ("False", InstanceReason.EXPIRED, "the credential ended on 2027-01-01 00:00 UTC: replace it")),
        (
            1,
            True,
            "",
            ("True", InstanceReason.VALID, "the credential ends on 2027-01-02 00:00 UTC and is renewed before"),
        ),
        (
            1,
            False,
            "",
            ("True", InstanceReason.EXPIRING, "the credential ends on 2027-01-02 00:00 UTC: replace it before"),
        ),
        (60, False, "", ("True", InstanceReason.VALID, "the credential ends on 2027-03-02 00:00 UTC")),
        (
            1,
            True,
            "no",
            (
                "True",
                InstanceReason.EXPIRING,
                "the credential ends on 2027-01-02 00:00 UTC and could not be renewed (no): replace it before",
            ),
        ),
    ],
)
def test_what_is_said_of_its_end(days: int | None, renewed: bool, problem: str, expected: tuple[str, ...]) -> None:
    ends = None if days is None else NOW + dt.timedelta(days=days)
    assert expiry_condition(ends, now=NOW, kept="it", renewed=renewed, problem=problem) == expected
