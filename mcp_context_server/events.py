"""What happened, as log lines on stderr: one JSON object each, figures and names only."""

import json
import logging

_LOG = logging.getLogger("mcp_context_server.events")


def emit(event: str, **facts: object) -> None:
    """Log an event with its facts; those that are None are left out."""
    if _LOG.isEnabledFor(logging.INFO):
        told = {name: fact for name, fact in facts.items() if fact is not None}
        line = json.dumps({"event": event, **told}, ensure_ascii=False, default=str)
        _LOG.info("%s", line)
