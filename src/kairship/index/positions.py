"""Continue tokens: where the next page begins, signed.

A token is good for the question and the caller that it was given for and nothing else: both are part of what is signed.
Whoever changes a letter of it, or brings it to another cluster, kind, selector or person, is told that it is no token.
The key is shared by all replicas and made once per store.
"""

import base64
import hashlib
import hmac
from typing import Any, TypeVar

import msgspec

from kairship.index.query import Position, Query
from kairship.index.search import SearchPosition

T = TypeVar("T")

_MARK = "k1."
_SIGNATURE = 16
_LONGEST = 8192


class BadTokenError(Exception):
    """Not a token of ours for this question and caller."""


class PageMark(msgspec.Struct, frozen=True, array_like=True):
    """Behind the last row of a page; `epoch` and `revision` are those of the first page."""

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
        """Whether it has our mark. One without it was given out by the cluster, and is for the cluster."""
        return token.startswith(_MARK)

    def issue(self, mark: PageMark, query: Query, *, caller: str) -> str:
        return self._sealed(msgspec.json.encode(mark), _context(query), caller)

    def read(self, token: str, query: Query, *, caller: str) -> PageMark:
        """Raises `BadTokenError`. `query` is the one that the token continues; its position does not matter."""
        return self._opened(token, _context(query), caller, PageMark)

    def seal(self, position: SearchPosition, context: Any, *, caller: str) -> str:
        """The same for a search, with whatever says which search it was."""
        return self._sealed(msgspec.json.encode(position), context, caller)

    def unseal(self, token: str, context: Any, *, caller: str) -> SearchPosition:
        """Raises `BadTokenError`."""
        return self._opened(token, context, caller, SearchPosition)

    def _sealed(self, body: bytes, context: Any, caller: str) -> str:
        return _MARK + base64.urlsafe_b64encode(self._sign(body, context, caller) + body).decode().rstrip("=")

    def _opened(self, token: str, context: Any, caller: str, shape: type[T]) -> T:
        try:
            if not self.is_ours(token) or len(token) > _LONGEST:
                raise BadTokenError("the continue token is not one of this server")
            text = token[len(_MARK) :]
            packed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
            signature, body = packed[:_SIGNATURE], packed[_SIGNATURE:]
            if not hmac.compare_digest(signature, self._sign(body, context, caller)):
                raise BadTokenError("the continue token was not given out for this question")
            return msgspec.json.decode(body, type=shape)
        except (ValueError, msgspec.DecodeError) as error:
            raise BadTokenError("the continue token is damaged") from error

    def _sign(self, body: bytes, context: Any, caller: str) -> bytes:
        encoded = msgspec.json.encode([caller, context], order="deterministic")
        message = hashlib.sha256(encoded).digest() + body
        return hmac.digest(self._key, message, "sha256")[:_SIGNATURE]


def _context(query: Query) -> Query:
    return msgspec.structs.replace(query, after=None, limit=None, skip=0)
