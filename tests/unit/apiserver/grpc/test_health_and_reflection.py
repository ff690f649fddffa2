"""gRPC's own services, health and reflection, need no token."""

from collections.abc import AsyncIterator

import grpc
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool  # type: ignore[import-untyped]
from protobuf import Oneof
from support.entrance import METHODS, Running, running

from kairship.gen.grpc.health.v1.health_pb import (
    HealthCheckRequest,
    HealthCheckResponse,
    HealthListRequest,
    HealthListResponse,
)
from kairship.gen.grpc.reflection.v1.reflection_pb import (
    ExtensionRequest,
    ServerReflectionRequest,
    ServerReflectionResponse,
)

Serving = HealthCheckResponse.ServingStatus
REFLECTION = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"


@pytest.fixture
async def server() -> AsyncIterator[Running]:
    async with running() as found:
        yield found


async def unary(server: Running, path: str, request: bytes) -> bytes:
    call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = server.client.channel.unary_unary(path)
    return await call(request, timeout=60)


@pytest.mark.parametrize("service", ["", "kairship.v1alpha1.Instance"])
async def test_it_is_healthy(server: Running, service: str) -> None:
    reply = await unary(server, "/grpc.health.v1.Health/Check", HealthCheckRequest(service=service).to_binary())
    assert HealthCheckResponse.from_binary(reply).status == Serving.SERVING


async def test_a_service_that_is_not_there_is_not_found(server: Running) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await unary(server, "/grpc.health.v1.Health/Check", HealthCheckRequest(service="no.Such").to_binary())
    assert refused.value.code() is grpc.StatusCode.NOT_FOUND


async def test_all_services_are_listed(server: Running) -> None:
    reply = await unary(server, "/grpc.health.v1.Health/List", HealthListRequest().to_binary())
    assert {status.status for status in HealthListResponse.from_binary(reply).statuses.values()} == {Serving.SERVING}


async def test_a_method_that_is_not_there_is_unimplemented(server: Running) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await unary(server, "/kairship.v1alpha1.Instance/NoSuch", b"")
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def reflect(server: Running, question: Oneof) -> ServerReflectionResponse:  # type: ignore[type-arg]
    stream: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = server.client.channel.stream_stream(REFLECTION)
    request = ServerReflectionRequest(message_request=question).to_binary()
    replies = [reply async for reply in stream(iter([request]), timeout=60)]
    assert len(replies) == 1
    return ServerReflectionResponse.from_binary(replies[0])


async def test_reflection_is_enough_to_call_every_method(server: Running) -> None:
    """A client without the protos builds the messages of all methods from it, with Google's protobuf runtime."""
    listed = await reflect(server, Oneof("list_services", ""))
    assert listed.message_response is not None
    services = {service.name for service in listed.message_response.value.service}  # type: ignore[union-attr]
    assert services >= {method.path[1:].rpartition("/")[0] for method in METHODS.values()}
    pool = descriptor_pool.DescriptorPool()
    files: dict[str, descriptor_pb2.FileDescriptorProto] = {}
    for service in services - {"grpc.health.v1.Health"}:
        reply = await reflect(server, Oneof("file_containing_symbol", service))
        assert reply.message_response is not None
        for data in reply.message_response.value.file_descriptor_proto:  # type: ignore[union-attr]
            file = descriptor_pb2.FileDescriptorProto.FromString(data)
            files[file.name] = file

    def add(name: str) -> None:
        file = files.pop(name, None)
        if file is not None:
            for dependency in file.dependency:
                add(dependency)
            pool.Add(file)

    for name in list(files):
        add(name)
    for method in METHODS.values():
        service, _, name = method.path[1:].rpartition("/")
        found = pool.FindServiceByName(service).methods_by_name[name]
        assert found.input_type.full_name == method.request.desc().type_name
        assert found.output_type.full_name == method.reply.desc().type_name


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (Oneof("file_by_filename", "kairship/v1alpha1/instance.proto"), "file_descriptor_response"),
        (Oneof("file_containing_symbol", "kairship.v1alpha1.Instance.GetInstance"), "file_descriptor_response"),
        (
            Oneof(
                "file_containing_extension",
                ExtensionRequest(containing_type="google.protobuf.MethodOptions", extension_number=50401),
            ),
            "file_descriptor_response",
        ),
        (Oneof("all_extension_numbers_of_type", "google.protobuf.MethodOptions"), "all_extension_numbers_response"),
        (Oneof("all_extension_numbers_of_type", "no.Such"), "error_response"),
        (Oneof("file_by_filename", "../../etc/passwd"), "error_response"),
        (Oneof("file_containing_symbol", "no.Such"), "error_response"),
    ],
    ids=str,
)
async def test_questions_and_answers(server: Running, question: Oneof, answer: str) -> None:  # type: ignore[type-arg]
    reply = await reflect(server, question)
    assert reply.message_response is not None
    assert reply.message_response.field == answer
