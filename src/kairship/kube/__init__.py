"""The thin asynchronous Kubernetes client that all other packages share.

client, reading, writing    `Client`, with the verbs that read and those that change objects
endpoint                    the identity and the raw requests below the verbs
config                      `Connection`, kubeconfigs and tokens: where a server is and who calls it
http                        transport, TLS, addresses, and upgraded connections
resource, kinds, discovery  resources, those that the code names, and how others are found
errors, status              the tree of errors, and how a reply becomes one
decoding, watching          JSON to objects, and the events of a watch
cluster_identity            the identity of a cluster under every name and address
retry                       `retry_on_conflict` for read-modify-write
documents, quantities       YAML from users, and amounts such as 500m and 2Gi
"""

from kairship.kube import errors, kinds
from kairship.kube.client import Client, TypedClient
from kairship.kube.config.connection import Connection
from kairship.kube.config.kubeconfig import Kubeconfig
from kairship.kube.config.user import FileToken, Impersonation, TokenSource
from kairship.kube.decoding import Object
from kairship.kube.discovery import Catalogue, ServedResource
from kairship.kube.errors import (
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
from kairship.kube.http.addresses import AddressRule
from kairship.kube.http.tls import ssl_context
from kairship.kube.http.transport import RawResponse, RoundTripper, Stream
from kairship.kube.http.upgrade import Upgraded, UpgradeRefused
from kairship.kube.resource import Resource, is_path_segment
from kairship.kube.retry import retry_on_conflict
from kairship.kube.watching import LARGEST_EVENT, WatchEvent

__all__ = [
    "LARGEST_EVENT",
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
    "Expired",
    "FileToken",
    "Forbidden",
    "Impersonation",
    "InternalError",
    "Invalid",
    "KubeError",
    "Kubeconfig",
    "MethodNotAllowed",
    "NotFound",
    "Object",
    "RawResponse",
    "ReplyTooLarge",
    "Resource",
    "RoundTripper",
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
    "TypedClient",
    "Unauthorized",
    "Unavailable",
    "UnknownKind",
    "UnsupportedMediaType",
    "UpgradeRefused",
    "Upgraded",
    "WatchEvent",
    "errors",
    "is_path_segment",
    "kinds",
    "retry_on_conflict",
    "ssl_context",
]
