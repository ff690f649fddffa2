"""The errors of calls to an API server.

KubeError                       the base; `retryable` says whether the same call may succeed later
├── ConfigError                 the kubeconfig, certificate or token cannot be used as it is
├── UnknownKind                 the server does not serve this kind (yet)                                    retryable
├── ApiError                    the server understood and refused: status, reason, message, causes
│   ├── BadRequest              400
│   ├── Unauthorized            401
│   ├── Forbidden               403
│   ├── NotFound                404
│   ├── MethodNotAllowed        405
│   ├── AlreadyExists           409, reason AlreadyExists
│   ├── Conflict                409, anything else: changed since it was read, or owned by another manager
│   ├── Expired                 410: a resourceVersion or continue token too old; list again
│   ├── TooLarge                413
│   ├── UnsupportedMediaType    415
│   ├── Invalid                 422, one cause per field
│   ├── TooManyRequests         429, usually with retry_after                                                retryable
│   └── ServerError             5xx                                                                          retryable
│       ├── InternalError       500
│       ├── Unavailable         503
│       └── ServerTimeout       504, and any status whose reason is ServerTimeout or Timeout
└── TransportError              no answer that could be understood; a write may or may not have happened
    ├── ConnectFailed           nothing was sent                                                             retryable
    ├── AddressRefused          the client must not connect to this address; nothing was sent
    ├── Disconnected            the connection was lost before the end of the reply                          retryable
    │   └── ClientClosed        the client itself was closed. Not retryable, because it stays closed
    ├── TimedOut                the call's own deadline passed                                               retryable
    ├── TlsError                the two sides do not trust each other; nothing was sent
    │   └── CertificateExpired  the server's certificate has expired
    └── BadReply                something answered, but not as an API server does
        └── ReplyTooLarge       the reply has more bytes than the client accepts

Conflict and Expired are not `retryable`, because the same call would fail again: read first, then call again.
Messages name the server and the call and say what to do. They never contain tokens, keys or query strings.
"""
# ruff: noqa: N818 - NotFound, Conflict: the names are the server's own reasons

from collections.abc import Sequence
from typing import ClassVar

import msgspec


class KubeError(Exception):
    """Any failure of a call to an API server."""

    retryable: ClassVar[bool] = False


class ConfigError(KubeError):
    """The kubeconfig, certificate or token cannot be used as it is."""


class UnknownKind(KubeError):
    """The server does not serve this kind. It may do so once its CRD or API service is installed."""

    retryable = True


class Cause(msgspec.Struct, frozen=True):
    """One of the causes of a refusal, most often one field of an invalid object."""

    reason: str = ""
    message: str = ""
    field: str = ""


class ApiError(KubeError):
    """The server understood the call and refused it."""

    advice: ClassVar[str] = ""

    def __init__(
        self,
        *,
        status: int,
        reason: str = "",
        message: str = "",
        causes: Sequence[Cause] = (),
        retry_after: float | None = None,
        call: str = "the call",
        server: str = "the server",
    ) -> None:
        text = f"{server} refused {call}: {status} {reason}".rstrip()
        if message:
            text += f": {message}"
        if self.advice:
            text += f" ({self.advice})"
        super().__init__(text)
        self.status = status
        self.reason = reason
        self.message = message
        self.causes = tuple(causes)
        self.retry_after = retry_after


class BadRequest(ApiError):
    """400."""


class Unauthorized(ApiError):
    """401."""

    advice = "the credential was not accepted; renew it"


class Forbidden(ApiError):
    """403."""

    advice = "the identity lacks this permission; grant it by RBAC or use another identity"


class NotFound(ApiError):
    """404."""


class MethodNotAllowed(ApiError):
    """405."""


class AlreadyExists(ApiError):
    """409, reason AlreadyExists."""


class Conflict(ApiError):
    """409 for any other reason."""

    advice = "the object has changed or has another owner; read it again before the next attempt"


class Expired(ApiError):
    """410."""

    advice = "list again from the beginning"


class TooLarge(ApiError):
    """413."""


class UnsupportedMediaType(ApiError):
    """415."""


class Invalid(ApiError):
    """422."""


class TooManyRequests(ApiError):
    """429."""

    retryable = True
    advice = "call again after a pause"


class ServerError(ApiError):
    """Any 5xx."""

    retryable = True


class InternalError(ServerError):
    """500."""


class Unavailable(ServerError):
    """503."""


class ServerTimeout(ServerError):
    """504, or any status whose reason is ServerTimeout or Timeout."""


class TransportError(KubeError):
    """No answer that could be understood. Unless a subclass says so, a write may or may not have happened."""


class ConnectFailed(TransportError):
    """The connection could not be established, so nothing was sent."""

    retryable = True


class AddressRefused(TransportError):
    """The `AddressRule` of the client forbids the address; nothing was sent."""


class Disconnected(TransportError):
    """The connection was lost before the end of the reply."""

    retryable = True


class ClientClosed(Disconnected):
    """The client was closed, before the call or during it."""

    retryable = False


class TimedOut(TransportError):
    """The call's own deadline passed."""

    retryable = True


class TlsError(TransportError):
    """The two sides do not trust each other; nothing was sent."""


class CertificateExpired(TlsError):
    """The server's certificate has expired."""


class BadReply(TransportError):
    """Something answered, but not as an API server does."""


class ReplyTooLarge(BadReply):
    """The reply has more bytes than the client accepts."""
