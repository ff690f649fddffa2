"""OpenTelemetry spans, if `OTEL_EXPORTER_OTLP_ENDPOINT` names a collector. Without it, the library is not loaded."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol

from kairship import __version__
from kairship.rpc.calls import Envelope
from kairship.rpc.errors import ApiError
from kairship.wire import Method

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


class Tracing(Protocol):
    def span(self, method: Method, envelope: Envelope) -> AbstractContextManager[None]: ...

    def close(self) -> None:
        """Sends the remaining spans. Blocks for as long as the collector takes, a few seconds at most."""
        ...


class NoTracing:
    def span(self, method: Method, envelope: Envelope) -> AbstractContextManager[None]:
        return nullcontext()

    def close(self) -> None:
        pass


class OpenTelemetry:
    """Spans continue the caller's trace (`traceparent`) and are sent in batches by a thread of the library."""

    def __init__(self) -> None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace import SpanKind, Status, StatusCode
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        resource = Resource.create({"service.name": "kairship-apiserver", "service.version": __version__})
        self._provider = TracerProvider(resource=resource)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(timeout=5)))
        self._tracer = self._provider.get_tracer("kairship.apiserver")
        self._propagator = TraceContextTextMapPropagator()
        self._kind = SpanKind.SERVER
        self._failed: Any = lambda error: Status(StatusCode.ERROR, error.code.name)

    @contextmanager
    def span(self, method: Method, envelope: Envelope) -> Iterator[None]:
        carrier = {name: value for name in ("traceparent", "tracestate") if (value := envelope.headers.get(name))}
        with self._tracer.start_as_current_span(
            method.path[1:],
            context=self._propagator.extract(carrier),
            kind=self._kind,
            attributes={
                "rpc.service": method.service,
                "rpc.method": method.name,
                "kairship.request_id": envelope.request_id,
            },
            record_exception=False,  # messages of errors may quote what must not leave the plane
            set_status_on_exception=False,
        ) as span:
            try:
                yield
            except ApiError as error:
                span.set_status(self._failed(error))
                raise

    def close(self) -> None:
        self._provider.shutdown()


def tracing_from_environment() -> Tracing:
    return OpenTelemetry() if os.environ.get(ENDPOINT) else NoTracing()
