"""How each check of a verification ended. The first that fails ends all; those behind it are said not to be made."""

from kairship.gen.kairship.kpanda.v1alpha1.credential_pb import Check, CheckResult, CheckType, Verification

_ORDER = tuple(check for check in CheckType if check is not CheckType.UNSPECIFIED)
_ACCEPTABLE = (CheckResult.PASSED, CheckResult.WARNING)


class CheckFailed(Exception):  # noqa: N818 - says what is the case
    """The message says why, and what to do."""

    def __init__(self, check: CheckType, message: str) -> None:
        super().__init__(message)
        self.check = check
        self.message = message


class Checklist:
    def __init__(self) -> None:
        self._made: dict[CheckType, Check] = {}

    def passed(self, check: CheckType, message: str) -> None:
        self._note(check, CheckResult.PASSED, message)

    def warned(self, check: CheckType, message: str) -> None:
        self._note(check, CheckResult.WARNING, message)

    def failed(self, failure: CheckFailed) -> None:
        self._note(failure.check, CheckResult.FAILED, failure.message)

    def timed_out(self, after: float) -> None:
        """In the middle of the first check that was not made yet, if there is one."""
        for check in _ORDER:
            if check not in self._made:
                self._note(check, CheckResult.FAILED, f"this took longer than {after:g} s in all; try again")
                return

    def write_to(self, result: Verification) -> None:
        result.checks = [self._made.get(check) or _not_made(check) for check in _ORDER]
        result.accepted = all(check.result in _ACCEPTABLE for check in result.checks)

    def _note(self, check: CheckType, result: CheckResult, message: str) -> None:
        self._made[check] = Check(type=check, result=result, message=message)


def _not_made(check: CheckType) -> Check:
    return Check(type=check, result=CheckResult.NOT_MADE, message="not made, because an earlier check failed")
