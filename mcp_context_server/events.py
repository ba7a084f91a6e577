"""What happened, as log lines on stderr and to OpenTelemetry: figures and names, never text.

A line is one JSON object. Where OpenTelemetry is configured (see `telemetry`), the same event
stands on the span of the request that it happened in, and counts in the metrics.
"""

import json
import logging
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

_LOG = logging.getLogger("mcp_context_server.events")

EVENTS: Mapping[str, str] = {
    "compaction_done": "A compaction was committed.",
    "compaction_dry_run": "A compaction was tried without being committed.",
    "compaction_failed": "A compaction came to nothing; history is as it was.",
    "compaction_nothing_to_do": "There was nothing worth compacting.",
    "breaker_opened": "Automatic compaction failed so often in a row that it pauses.",
    "breaker_closed": "A compaction succeeded after that; automatic ones go on.",
    "spill": "Oversized results were set aside, a preview in their place.",
    "media": "Old images and documents were replaced by markers.",
    "reread": "A file that was read again was replaced by a pointer where it stood first.",
    "snip": "Results that were to go with a cold cache were cleared.",
    "microcompact": "Old results were cleared before a turn.",
    "collapse": "Old rounds were folded into notes.",
    "remainder": "Results were cleared that folding had left.",
    "overflow_recovery": "A provider refused a request, and the next step was taken.",
    "summary_retried": "A summary call overflowed and was made smaller.",
    "summary_flattened": "A summary call with the conversation's own prefix gave no summary; "
    "it was sent again as plain text.",
    "hook_failed": "A command of the hooks file failed or took too long; nothing else did.",
}
"""Every event with what it says."""

FACTS: Mapping[str, str] = {
    "session_id": "the session",
    "trigger": "`auto`, `manual` or `host`",
    "summarizer": "who wrote the summary",
    "tokens_before": "tokens in use before",
    "tokens_after": "tokens in use after",
    "tokens_freed": "tokens that left the view",
    "dry_run": "true where nothing was written",
    "tried": "the summarizers that failed before, by name",
    "reason": "why, in a sentence or a provider's word",
    "kind": "what the provider's error was",
    "stage": "the step that was taken",
    "retry": "whether the request is to be sent again",
    "tries": "how often it was tried",
    "left_out": "messages left out of the summary call",
    "hook": "the command",
    "on": "the hook's event",
}
"""Every fact that an event may carry; those that there are none of are left out."""

_LABELS = ("trigger", "stage", "summarizer", "kind", "on", "retry")
"""Facts of few values, by which metrics may be told apart."""


def emit(event: str, **facts: object) -> None:
    """Tell of an event with its facts; those that are None are left out."""
    told = {name: fact for name, fact in facts.items() if fact is not None}
    if _LOG.isEnabledFor(logging.INFO):
        line = json.dumps({"event": event, **told}, ensure_ascii=False, default=str)
        _LOG.info("%s", line)
    # The SDK loads the interface; without it nobody can be listening.
    if "opentelemetry.trace" in sys.modules:
        _measure(event, told)


def _measure(event: str, told: Mapping[str, Any]) -> None:
    from opentelemetry import trace

    told = {name: fact if _is_plain(fact) else str(fact) for name, fact in told.items()}
    trace.get_current_span().add_event(event, told)
    happened, freed = _instruments()
    labels = {"event": event, **{name: told[name] for name in _LABELS if name in told}}
    happened.add(1, labels)
    before, after = told.get("tokens_before"), told.get("tokens_after")
    gone = told.get("tokens_freed", before - after if before and after else 0)
    if gone > 0 and not told.get("dry_run"):
        freed.add(gone, labels)


def _is_plain(fact: object) -> bool:
    return isinstance(fact, bool | int | float | str)


@cache
def _instruments() -> tuple[Any, Any]:
    from opentelemetry import metrics

    meter = metrics.get_meter("mcp_context_server")
    return (
        meter.create_counter("mcp_context.events", unit="{event}", description="Events, by name"),
        meter.create_counter(
            "mcp_context.tokens_freed", unit="{token}", description="Tokens that left views"
        ),
    )
