"""The order of Karmada versions."""


def is_older(version: str, than: str) -> bool:
    """Whether a version is older: v1.18.9 is older than v1.18.10, and a pre-release is older than its release."""
    return _order(version) < _order(than)


def _order(version: str) -> tuple[tuple[int, ...], bool, str]:
    release, _, pre_release = version.removeprefix("v").partition("-")
    return tuple(int(part) for part in release.split(".")), not pre_release, pre_release
