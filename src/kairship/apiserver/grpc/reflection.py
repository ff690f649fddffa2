"""gRPC's reflection service: the protos, for tools like grpcurl. They are public: no authentication is needed."""

import asyncio
import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import grpc
from protobuf import Oneof
from protobuf.wkt import FileDescriptorProto, FileDescriptorSet

from kairship.apiserver.grpc.server import Handler
from kairship.gen.grpc.reflection.v1.reflection_pb import (
    ErrorResponse,
    ExtensionNumberResponse,
    ExtensionRequest,
    FileDescriptorResponse,
    ListServiceResponse,
    ServerReflectionRequest,
    ServerReflectionResponse,
    ServiceResponse,
)
from kairship.rpc.errors import Code

MOST_SESSIONS = 50
LONGEST_SESSION = 300.0


class Reflection:
    def __init__(self, descriptors: bytes, services: Iterable[str]) -> None:
        self._services = sorted(services)
        self._descriptors = descriptors
        self._sessions = 0

    def handlers(self) -> Mapping[str, Handler]:
        def encode(message: Any) -> bytes:
            encoded: bytes = message.to_binary()
            return encoded

        return {
            "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo": grpc.stream_stream_rpc_method_handler(
                self._serve, ServerReflectionRequest.from_binary, encode
            )
        }

    async def _serve(self, _: Any, context: "grpc.aio.ServicerContext[Any, Any]") -> None:
        if self._sessions >= MOST_SESSIONS:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many streams are open; try again later")
        self._sessions += 1
        try:
            async with asyncio.timeout(LONGEST_SESSION):
                while isinstance(request := await context.read(), ServerReflectionRequest):
                    await context.write(self._answer(request))
        except TimeoutError:
            await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "the stream has lasted its time; call again")
        finally:
            self._sessions -= 1

    def _answer(self, request: ServerReflectionRequest) -> ServerReflectionResponse:
        return ServerReflectionResponse(
            valid_host=request.host, original_request=request, message_response=self._response(request)
        )

    def _response(self, request: ServerReflectionRequest) -> Any:
        query = request.message_request
        match query and query.field, query and query.value:
            case "list_services", _:
                names = [ServiceResponse(name=name) for name in self._services]
                return Oneof("list_services_response", ListServiceResponse(service=names))
            case "file_by_filename", str(name):
                found = self._descriptor_index.files.get(name)
            case "file_containing_symbol", str(symbol):
                found = self._descriptor_index.by_symbol.get(symbol)
            case "file_containing_extension", ExtensionRequest() as wanted:
                found = self._descriptor_index.by_extension.get((wanted.containing_type, wanted.extension_number))
            case "all_extension_numbers_of_type", str(kind) if kind in self._descriptor_index.by_symbol:
                numbers = [number for extended, number in self._descriptor_index.by_extension if extended == kind]
                return Oneof(
                    "all_extension_numbers_response",
                    ExtensionNumberResponse(base_type_name=kind, extension_number=numbers),
                )
            case _:
                found = None
        if found is None:
            return Oneof("error_response", ErrorResponse(error_code=Code.NOT_FOUND, error_message="not found"))
        files = [file.to_binary() for file in self._descriptor_index.with_imports(found)]
        return Oneof("file_descriptor_response", FileDescriptorResponse(file_descriptor_proto=files))

    @functools.cached_property
    def _descriptor_index(self) -> "_DescriptorIndex":
        return _DescriptorIndex(FileDescriptorSet.from_binary(self._descriptors))


class _DescriptorIndex:
    """The files of the protos by name, symbol and extension. It is built on the first request."""

    def __init__(self, descriptors: FileDescriptorSet) -> None:
        self.files = {file.name: file for file in descriptors.file}
        self.by_symbol = {symbol: file for file in descriptors.file for symbol in _symbols(file)}
        self.by_extension = {
            (extension.extendee.removeprefix("."), extension.number): file
            for file in descriptors.file
            for extension in file.extension
        }

    def with_imports(self, file: FileDescriptorProto) -> list[FileDescriptorProto]:
        found: dict[str, FileDescriptorProto] = {}
        to_visit = [file]
        while to_visit:
            current = to_visit.pop()
            if current.name not in found:
                found[current.name] = current
                to_visit += [self.files[name] for name in current.dependency if name in self.files]
        return list(found.values())


def _symbols(file: FileDescriptorProto) -> Iterator[str]:
    for service in file.service:
        yield f"{file.package}.{service.name}"
        yield from (f"{file.package}.{service.name}.{method.name}" for method in service.method)
    for message in file.message_type:
        yield from _symbols_in(message, file.package)
    for name in (*(enum.name for enum in file.enum_type), *(extension.name for extension in file.extension)):
        yield f"{file.package}.{name}"


def _symbols_in(message: Any, scope: str) -> Iterator[str]:
    name = f"{scope}.{message.name}"
    yield name
    for inner in message.nested_type:
        yield from _symbols_in(inner, name)
    for other in (*message.enum_type, *message.field):
        yield f"{name}.{other.name}"
