"""The results of the checks of a verification. The first check that fails ends it; the later ones are not made."""

from kairship.gen.kairship.kpanda.v1alpha1.credential_pb import Check, CheckResult, CheckType, Verification

_ORDER = tuple(check for check in CheckType if check is not CheckType.UNSPECIFIED)
_ACCEPTABLE = (CheckResult.PASSED, CheckResult.WARNING)


class CheckFailed(Exception):  # noqa: N818 - reads as a statement
    """A check failed. The message says why, and what to do."""

    def __init__(self, check: CheckType, message: str) -> None:
        super().__init__(message)
        self.check = check
        self.message = message


class Checklist:
    def __init__(self) -> None:
        self._results: dict[CheckType, Check] = {}

    def passed(self, check: CheckType, message: str) -> None:
        self._record(check, CheckResult.PASSED, message)

    def warned(self, check: CheckType, message: str) -> None:
        self._record(check, CheckResult.WARNING, message)

    def failed(self, failure: CheckFailed) -> None:
        self._record(failure.check, CheckResult.FAILED, failure.message)

    def timed_out(self, after: float) -> None:
        """The verification timed out during the first check that has no result yet, if there is one."""
        for check in _ORDER:
            if check not in self._results:
                self._record(check, CheckResult.FAILED, f"this took longer than {after:g} s in all; try again")
                return

    def write_to(self, result: Verification) -> None:
        result.checks = [self._results.get(check) or _not_made(check) for check in _ORDER]
        result.accepted = all(check.result in _ACCEPTABLE for check in result.checks)

    def _record(self, check: CheckType, result: CheckResult, message: str) -> None:
        self._results[check] = Check(type=check, result=result, message=message)


def _not_made(check: CheckType) -> Check:
    return Check(type=check, result=CheckResult.NOT_MADE, message="not made, because an earlier check failed")
