"""Page tokens: where the next page begins, signed. A LIST of Kubernetes returns them as `continue`.

A token is valid for the query and the caller that it was issued for and for nothing else: both are part of what is
signed. A token that was changed, or that comes with another cluster, kind, selector or caller, is refused. The key is
created once per store and shared by all replicas.
"""

import base64
import hashlib
import hmac
from typing import Any, TypeVar

import msgspec

from kairship.index.query import Position, Query
from kairship.index.search.model import SearchPosition

T = TypeVar("T")

_PREFIX = "k1."
_SIGNATURE = 16
_LONGEST = 8192


class BadTokenError(Exception):
    """The token was not issued by this server, or not for this query and caller."""


class PagePosition(msgspec.Struct, frozen=True, array_like=True):
    """The position after the last row of a page. `epoch` and `revision` are those of the first page."""

    position: Position
    epoch: int = 0
    revision: int = 0


class PageTokens:
    def __init__(self, key: bytes) -> None:
        if len(key) < 16:
            raise ValueError("the key of continue tokens has at least 16 bytes")
        self._key = key

    @staticmethod
    def is_ours(token: str) -> bool:
        """Whether it has our prefix. A token without it was issued by the cluster, which has to continue the list."""
        return token.startswith(_PREFIX)

    def issue(self, position: PagePosition, query: Query, *, caller: str) -> str:
        return self._sealed(msgspec.json.encode(position), _context(query), caller)

    def read(self, token: str, query: Query, *, caller: str) -> PagePosition:
        """Raises `BadTokenError`. `query` is the query that the token continues; its own position does not matter."""
        return self._opened(token, _context(query), caller, PagePosition)

    def issue_for_search(self, position: SearchPosition, context: Any, *, caller: str) -> str:
        """As `issue`, for a search. `context` identifies the search."""
        return self._sealed(msgspec.json.encode(position), context, caller)

    def read_for_search(self, token: str, context: Any, *, caller: str) -> SearchPosition:
        """Raises `BadTokenError`."""
        return self._opened(token, context, caller, SearchPosition)

    def _sealed(self, body: bytes, context: Any, caller: str) -> str:
        return _PREFIX + base64.urlsafe_b64encode(self._sign(body, context, caller) + body).decode().rstrip("=")

    def _opened(self, token: str, context: Any, caller: str, shape: type[T]) -> T:
        try:
            if not self.is_ours(token) or len(token) > _LONGEST:
                raise BadTokenError("the continue token was not issued by this server: begin the list again")
            text = token[len(_PREFIX) :]
            packed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
            signature, body = packed[:_SIGNATURE], packed[_SIGNATURE:]
            if not hmac.compare_digest(signature, self._sign(body, context, caller)):
                raise BadTokenError("the continue token was issued for another query: begin the list again")
            return msgspec.json.decode(body, type=shape)
        except (ValueError, msgspec.DecodeError) as error:
            raise BadTokenError("the continue token is damaged: begin the list again") from error

    def _sign(self, body: bytes, context: Any, caller: str) -> bytes:
        encoded = msgspec.json.encode([caller, context], order="deterministic")
        message = hashlib.sha256(encoded).digest() + body
        return hmac.digest(self._key, message, "sha256")[:_SIGNATURE]


def _context(query: Query) -> Query:
    return msgspec.structs.replace(query, after=None, limit=None, skip=0)
