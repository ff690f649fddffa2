"""The OpenAPI document and a page to try it. Both are public, without authentication.

The page loads nothing from other sites; a Content-Security-Policy makes the browser enforce that.
"""

import functools
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from aiohttp import web

_HERE = Path(__file__).parent
_PAGE = _HERE / "docs_page"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def pages() -> Mapping[str, Callable[[web.BaseRequest], Awaitable[web.Response]]]:
    """Returns the handlers of these pages, by path."""
    return {
        "/openapi.json": _file(openapi_document(), "application/json"),
        "/docs": _file(_PAGE / "index.html", "text/html"),
        "/docs/page.js": _file(_PAGE / "page.js", "text/javascript"),
        "/docs/page.css": _file(_PAGE / "page.css", "text/css"),
    }


def openapi_document() -> Path:
    """Returns the path of the document, in the installed package or in the checkout."""
    installed = _HERE / "openapi.json"
    return installed if installed.is_file() else _HERE.parents[3] / "api/openapi/kairship.json"


def _file(path: Path, content_type: str) -> Callable[[web.BaseRequest], Awaitable[web.Response]]:
    content = functools.cache(path.read_bytes)
    headers = {
        "Content-Type": f"{content_type}; charset=utf-8",
        "Server": "kairship",
        "Cache-Control": "no-cache",
        "Content-Security-Policy": _POLICY,
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
    }

    async def serve(_: web.BaseRequest) -> web.Response:
        return web.Response(body=content(), headers=headers)

    return serve
