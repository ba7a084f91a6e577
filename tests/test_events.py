"""Events are written down, and go to the log and to OpenTelemetry alike."""

import ast
import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from stdio import StdioServer

import mcp_context_server
from mcp_context_server import events, telemetry
from mcp_context_server.core.pipeline import STAGES
from mcp_context_server.events import EVENTS, FACTS, emit
from mcp_context_server.service.compacting import Outcome

pytestmark = pytest.mark.requirement("OBS-1")

PACKAGE = Path(mcp_context_server.__file__).parent


def emitted() -> set[tuple[str, frozenset[str]]]:
    """The events of every `emit` in the code, with the facts that it gives."""
    found = set()
    statuses = get_args(get_type_hints(Outcome)["status"])
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "emit":
                facts = frozenset(word.arg for word in node.keywords)
                match node.args[0]:
                    case ast.Constant(value=name):
                        found.add((name, facts))
                    case ast.JoinedStr():
                        ended = {*statuses, "dry_run"} - {"running", "needs_summary"}
                        found |= {(f"compaction_{status}", facts) for status in ended}
                    case _:
                        found |= {(name, facts) for name, _ in STAGES}
    return found


def test_every_event_and_fact_of_the_code_is_listed_and_no_other():
    found = emitted()
    assert {name for name, _ in found} == set(EVENTS)
    assert {fact for _, facts in found for fact in facts} == set(FACTS)


@pytest.fixture
def measured(monkeypatch):
    """Counts what is emitted."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    meter = provider.get_meter("t")
    made = tuple(meter.create_counter(f"mcp_context.{n}") for n in ("events", "tokens_freed"))
    monkeypatch.setattr(events, "_instruments", lambda: made)
    yield reader
    provider.shutdown()


def counted(reader) -> dict:
    """Sums by metric and event."""
    (resource,) = reader.get_metrics_data().resource_metrics
    return {
        (metric.name, point.attributes["event"]): point.value
        for metric in resource.scope_metrics[0].metrics
        for point in metric.data.data_points
    }


def test_an_event_counts_and_stands_on_the_span_of_its_request(measured):
    spans = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(spans))
    with provider.get_tracer("t").start_as_current_span("tools/call"):
        emit("compaction_done", session_id="s", trigger="auto", tokens_before=90, tokens_after=20)
        emit("compaction_dry_run", tokens_before=90, tokens_after=20, dry_run=True, trigger="auto")
        emit("compaction_failed", tried=["anthropic"], trigger=None)
        emit("microcompact", tokens_freed=5)
    (span,) = spans.get_finished_spans()
    assert [event.name for event in span.events] == [
        "compaction_done",
        "compaction_dry_run",
        "compaction_failed",
        "microcompact",
    ]
    assert dict(span.events[2].attributes) == {"tried": "['anthropic']"}
    assert counted(measured) == {
        ("mcp_context.events", "compaction_done"): 1,
        ("mcp_context.events", "compaction_dry_run"): 1,
        ("mcp_context.events", "compaction_failed"): 1,
        ("mcp_context.events", "microcompact"): 1,
        ("mcp_context.tokens_freed", "compaction_done"): 70,
        ("mcp_context.tokens_freed", "microcompact"): 5,
    }
    provider.shutdown()


def test_an_event_is_one_line_of_json(caplog):
    caplog.set_level(logging.INFO, "mcp_context_server.events")
    emit("spill", session_id="s", tokens_freed=3, reason=None)
    (record,) = caplog.records
    assert json.loads(record.getMessage()) == {
        "event": "spill",
        "session_id": "s",
        "tokens_freed": 3,
    }


@pytest.mark.parametrize(
    "environ", [{}, {"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "console"}]
)
def test_nothing_is_started_that_nobody_asked_for(environ):
    before = trace.get_tracer_provider()
    telemetry.start(environ)()
    assert trace.get_tracer_provider() is before


def test_without_the_extra_there_is_a_warning(monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.metrics", None)
    telemetry.start({"OTEL_TRACES_EXPORTER": "otlp"})()
    assert "mcp-context-server[otel]" in caplog.text


def test_a_server_tells_its_spans_on_stderr_and_none_on_stdout(tmp_path):
    environ = {"OTEL_TRACES_EXPORTER": "console", "OTEL_METRICS_EXPORTER": "console"}
    server = StdioServer("serve", "--store", "memory:", stderr=subprocess.PIPE, **environ)
    server.call("session_open")
    server.process.stdin.close()
    told = server.process.stderr.read().decode()
    server.process.wait(timeout=30)
    server.process.stdout.close()
    server.process.stderr.close()
    assert "tools/call session_open" in told
    assert "mcp-context-server" in told
