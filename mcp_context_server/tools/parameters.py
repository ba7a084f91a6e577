"""What several tools take, and how much of it.

Bounds and lengths hold although they are not listed (see `schema.slim`).
"""

from typing import Annotated, Any

from pydantic import Field

from mcp_context_server.tools.arguments import NAME_CHARS

MOST_TOKENS = 10**9
"""More than any window, file or version ever has."""
LONGEST_WAIT_SECONDS = 86_400

Name = Annotated[str, Field(max_length=NAME_CHARS)]
"""A name, an id, or another short text."""
Count = Annotated[int, Field(ge=0, le=MOST_TOKENS)]
"""Tokens, rounds, versions or places; never below zero."""
Seconds = Annotated[float, Field(ge=0, le=LONGEST_WAIT_SECONDS)]
SessionId = Annotated[Name, Field(description="From session_open; may be left out on stdio")]
PATH_CHARS = 4_096
"""Longest path that a call may give: the limit of most systems."""
Objects = list[dict[str, Any]]
