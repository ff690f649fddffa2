"""The API as data: its methods, and its messages as JSON.

The layers above use generated messages (`kairship.gen`), but only this package uses the protobuf library directly:

    methods        the methods with their routes, permissions and scopes, read from the descriptors
    json_reader    JSON into messages, with errors that name the field
    json_writer    messages into JSON
    parameters     path and query parameters into fields of a message
    object_mapper  Kubernetes objects into messages
    validation     the validation rules of the protos

Nothing here does input or output. Everything can be used from several tasks and threads.
"""

from kairship.wire.json_reader import ReadMessage, UnreadableError, read
from kairship.wire.json_writer import write
from kairship.wire.methods import Download, Method, Route, descriptors, internal_methods, methods
from kairship.wire.object_mapper import ObjectMapper
from kairship.wire.parameters import Parameter, find_parameter
from kairship.wire.validation import violations

__all__ = [
    "Download",
    "Method",
    "ObjectMapper",
    "Parameter",
    "ReadMessage",
    "Route",
    "UnreadableError",
    "descriptors",
    "find_parameter",
    "internal_methods",
    "methods",
    "read",
    "violations",
    "write",
]
