"""OpenTelemetry for this process, where the standard `OTEL_…` variables ask for it.

The MCP SDK makes a span of every request, and `events` puts what happened on it; here both
get somewhere to go.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricReader
    from opentelemetry.sdk.trace import SpanProcessor

logger = logging.getLogger(__name__)

SERVICE_NAME = "mcp-context-server"

ASKING = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
    "OTEL_TRACES_EXPORTER",
    "OTEL_METRICS_EXPORTER",
)
"""Variables of which any, set, asks for telemetry."""


def start(environ: Mapping[str, str]) -> Callable[[], None]:
    """Send traces and metrics as the environment asks; what is answered ends it.

    Exporters are `otlp`, over HTTP, `console`, on stderr, and `none`. Without the extra
    there is a warning, and nothing else changes.
    """
    if not is_asked_for(environ):
        return _nothing
    try:
        return _started(environ)
    except ImportError as error:
        logger.warning(
            "OpenTelemetry is asked for, but missing: pip install 'mcp-context-server[otel]' (%s)",
            error,
        )
        return _nothing


def is_asked_for(environ: Mapping[str, str]) -> bool:
    """Whether the environment asks for telemetry."""
    is_off = environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
    return not is_off and any(environ.get(name) for name in ASKING)


def _nothing() -> None:
    """Nothing was started."""


def _started(environ: Mapping[str, str]) -> Callable[[], None]:
    from opentelemetry import metrics, trace
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider

    name = environ.get("OTEL_SERVICE_NAME") or SERVICE_NAME
    resource = Resource.create({"service.name": name})
    tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
    for processor in _span_processors(environ.get("OTEL_TRACES_EXPORTER") or "otlp"):
        tracers.add_span_processor(processor)
    readers = _metric_readers(environ.get("OTEL_METRICS_EXPORTER") or "otlp")
    meters = MeterProvider(readers, resource=resource, shutdown_on_exit=False)
    trace.set_tracer_provider(tracers)
    metrics.set_meter_provider(meters)

    def end() -> None:
        tracers.shutdown()
        meters.shutdown()

    return end


def _span_processors(exporter: str) -> list[SpanProcessor]:
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter

    match exporter:
        case "none":
            return []
        case "console":
            return [BatchSpanProcessor(ConsoleSpanExporter(out=sys.stderr))]
        case _:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

            return [BatchSpanProcessor(OTLPSpanExporter())]


def _metric_readers(exporter: str) -> list[MetricReader]:
    from opentelemetry.sdk.metrics.export import (
        ConsoleMetricExporter,
        PeriodicExportingMetricReader,
    )

    match exporter:
        case "none":
            return []
        case "console":
            return [PeriodicExportingMetricReader(ConsoleMetricExporter(out=sys.stderr))]
        case _:
            from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

            return [PeriodicExportingMetricReader(OTLPMetricExporter())]
