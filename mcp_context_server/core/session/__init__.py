"""A session: what its transcript folds to, and what that costs in tokens.

`fold` takes a session and the entries that came after it, and gives the session
after them. Its cost is that of the new entries; only an edit of the view, which
is rare, looks at the whole of it.
"""

from mcp_context_server.core.session.anchor import Anchor, Overhead
from mcp_context_server.core.session.figures import (
    fixed_tokens,
    request_tokens,
    session_window,
    since_usage,
    tools_since,
    used_tokens,
    window_tokens,
)
from mcp_context_server.core.session.folding import fold, fold_all
from mcp_context_server.core.session.results import (
    Caller,
    Contributor,
    contributors,
    largest_results,
)
from mcp_context_server.core.session.state import Session
from mcp_context_server.core.session.tooling import terms_of

__all__ = [
    "Anchor",
    "Caller",
    "Contributor",
    "Overhead",
    "Session",
    "contributors",
    "fixed_tokens",
    "fold",
    "fold_all",
    "largest_results",
    "request_tokens",
    "session_window",
    "since_usage",
    "terms_of",
    "tools_since",
    "used_tokens",
    "window_tokens",
]
