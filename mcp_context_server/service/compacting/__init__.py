"""Compaction as a use case: what is asked, the summary, the files, the edit, the attempt.

`Compactor` is what the tools and the turn call.
"""

from mcp_context_server.service.compacting.asking import Asked, Outcome
from mcp_context_server.service.compacting.compactor import Compactor
from mcp_context_server.service.compacting.tickets import ticket_of, wish_of

__all__ = ("Asked", "Compactor", "Outcome", "ticket_of", "wish_of")
