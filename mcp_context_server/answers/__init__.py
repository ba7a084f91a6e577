"""From what the core knows to what a tool answers. Pure; no field is made up here.

`compaction` is apart from the others: it knows the use case, which is imported when first needed.
"""

from mcp_context_server.answers.counts import (
    Estimable,
    Method,
    countable_of,
    counted,
    estimate_of,
    uncounted,
)
from mcp_context_server.answers.memory import memory_read_of, memory_sizes, memory_updated_of
from mcp_context_server.answers.status import (
    SHARES_SHOWN,
    boundary_of,
    breaker_of,
    formula_of,
    largest_of,
    memory_of,
    queued_of,
    shares_of,
    status_of,
    thresholds_of,
)
from mcp_context_server.answers.tools import SERVERS_SHOWN, found_of, registered_of, tools_of
from mcp_context_server.answers.turns import (
    REFERENCES_SHOWN,
    SKIPPED_SHOWN,
    prepared_of,
    snipped_of,
)

__all__ = [
    "REFERENCES_SHOWN",
    "SERVERS_SHOWN",
    "SHARES_SHOWN",
    "SKIPPED_SHOWN",
    "Estimable",
    "Method",
    "boundary_of",
    "breaker_of",
    "countable_of",
    "counted",
    "estimate_of",
    "formula_of",
    "found_of",
    "largest_of",
    "memory_of",
    "memory_read_of",
    "memory_sizes",
    "memory_updated_of",
    "prepared_of",
    "queued_of",
    "registered_of",
    "shares_of",
    "snipped_of",
    "status_of",
    "thresholds_of",
    "tools_of",
    "uncounted",
]
