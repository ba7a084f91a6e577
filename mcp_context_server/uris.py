"""The addresses of what a session holds, as resources."""

from collections.abc import Iterable
from urllib.parse import quote, unquote

from mcp_context_server.changes import Change
from mcp_context_server.core.aspects import Aspect

SESSIONS_URI = "context://sessions"


def uri_of(session_id: str, aspect: Aspect) -> str:
    """The address of one side of a session; of `sessions`, that of the list."""
    if aspect == "sessions":
        return SESSIONS_URI
    return f"{SESSIONS_URI}/{quote(session_id, safe='')}/{aspect}"


def uris_of(change: Change) -> Iterable[str]:
    """The addresses at which a change is to be read, in a fixed order."""
    return [uri_of(change.session_id, aspect) for aspect in sorted(change.aspects)]


def session_in(uri: str) -> str:
    """The session that an address is about; empty for the list, and for what is not ours."""
    path, _, _ = uri.partition("?")
    prefix = f"{SESSIONS_URI}/"
    return unquote(path.removeprefix(prefix).partition("/")[0]) if path.startswith(prefix) else ""
