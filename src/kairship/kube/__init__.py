"""The thin asynchronous Kubernetes client that everything else shares.

`Connection` says how to reach an API server, `Client` calls it, `Resource` (and the constants in `kinds`) says what
is meant, `errors` holds the whole tree of failures.
"""

from . import errors, kinds
from .addresses import AddressRule
from .client import Client
from .connection import Connection
from .decoding import ListPage, Object
from .discovery import Catalogue, Discovery, ServedResource
from .endpoint import VersionInfo
from .errors import (
    AddressRefused,
    AlreadyExists,
    ApiError,
    BadReply,
    BadRequest,
    Cause,
    CertificateExpired,
    ClientClosed,
    ConfigError,
    Conflict,
    ConnectFailed,
    Disconnected,
    Expired,
    Forbidden,
    InternalError,
    Invalid,
    KubeError,
    MethodNotAllowed,
    NotFound,
    ReplyTooLarge,
    ServerError,
    ServerTimeout,
    TimedOut,
    TlsError,
    TooLarge,
    TooManyRequests,
    TransportError,
    Unauthorized,
    Unavailable,
    UnknownKind,
    UnsupportedMediaType,
)
from .identity import FileToken, Impersonation, TokenSource
from .kubeconfig import Kubeconfig
from .manifests import load_manifests
from .resource import Resource
from .tls import ssl_context
from .transport import Exchanges, RawResponse, Stream
from .upgrading import Refused, Upgraded
from .watching import WatchEvent
from .writing import PatchType, Propagation

__all__ = [
    "AddressRefused",
    "AddressRule",
    "AlreadyExists",
    "ApiError",
    "BadReply",
    "BadRequest",
    "Catalogue",
    "Cause",
    "CertificateExpired",
    "Client",
    "ClientClosed",
    "ConfigError",
    "Conflict",
    "ConnectFailed",
    "Connection",
    "Disconnected",
    "Discovery",
    "Exchanges",
    "Expired",
    "FileToken",
    "Forbidden",
    "Impersonation",
    "InternalError",
    "Invalid",
    "KubeError",
    "Kubeconfig",
    "ListPage",
    "MethodNotAllowed",
    "NotFound",
    "Object",
    "PatchType",
    "Propagation",
    "RawResponse",
    "Refused",
    "ReplyTooLarge",
    "Resource",
    "ServedResource",
    "ServerError",
    "ServerTimeout",
    "Stream",
    "TimedOut",
    "TlsError",
    "TokenSource",
    "TooLarge",
    "TooManyRequests",
    "TransportError",
    "Unauthorized",
    "Unavailable",
    "UnknownKind",
    "UnsupportedMediaType",
    "Upgraded",
    "VersionInfo",
    "WatchEvent",
    "errors",
    "kinds",
    "load_manifests",
    "ssl_context",
]
