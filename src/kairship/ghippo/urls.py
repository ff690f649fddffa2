"""The check of URLs that global management sends requests or browsers to."""

from urllib.parse import urlsplit

from kairship.ghippo.errors import InvalidArgument
from kairship.process.loopback import is_loopback


def check_url(url: str) -> None:
    """Requires https, except on the loopback interface: bindings and tokens are sent encrypted or not at all."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidArgument("this is not a URL", field="url") from error
    if not host or port == 0 or parts.username is not None or parts.fragment or not url.isprintable() or " " in url:
        raise InvalidArgument("give a URL such as https://example.com/bindings, without user or fragment", field="url")
    if parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host)):
        return
    raise InvalidArgument("the URL must begin with https:// (http:// is for this machine only)", field="url")
