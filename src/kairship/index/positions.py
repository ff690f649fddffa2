"""Continue tokens: where the next page begins, signed.

A token is good for the question and the caller that it was given for and nothing else: both are part of what is signed.
Whoever changes a letter of it, or brings it to another cluster, kind, selector or person, is told that it is no token.
The key is shared by all replicas and made once per store.
"""

import base64
import hashlib
import hmac

import msgspec

from kairship.index.query import Position, Query

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
        body = msgspec.json.encode(mark)
        return _MARK + base64.urlsafe_b64encode(self._sign(body, query, caller) + body).decode().rstrip("=")

    def read(self, token: str, query: Query, *, caller: str) -> PageMark:
        """Raises `BadTokenError`. `query` is the one that the token continues; its position does not matter."""
        try:
            if not self.is_ours(token) or len(token) > _LONGEST:
                raise BadTokenError("the continue token is not one of this server")
            text = token[len(_MARK) :]
            packed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
            signature, body = packed[:_SIGNATURE], packed[_SIGNATURE:]
            if not hmac.compare_digest(signature, self._sign(body, query, caller)):
                raise BadTokenError("the continue token was not given out for this question")
            return msgspec.json.decode(body, type=PageMark)
        except (ValueError, msgspec.DecodeError) as error:
            raise BadTokenError("the continue token is damaged") from error

    def _sign(self, body: bytes, query: Query, caller: str) -> bytes:
        asked = msgspec.structs.replace(query, after=None, limit=None, skip=0)
        context = msgspec.json.encode([caller, asked], order="deterministic")
        message = hashlib.sha256(context).digest() + body
        return hmac.digest(self._key, message, "sha256")[:_SIGNATURE]
