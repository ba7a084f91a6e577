"""How the server shows itself to hosts: its icon, and how long its lists may be kept."""

from base64 import b64encode
from collections.abc import Mapping

from mcp.server import CacheHint
from mcp.server.caching import CacheableMethod
from mcp.types import Icon

_GAUGE = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke-width="3" '
    'stroke-linecap="round"><path d="M4 17a9 9 0 1 1 16 0" stroke="#94a3b8"/>'
    '<path d="M4 17a9 9 0 0 1 11-12.5" stroke="#0d9488"/>'
    '<path d="m12 14 3.5-4" stroke="#0d9488"/></svg>'
)
"""A gauge that is two thirds full; it is seen on light and on dark."""

ICON = Icon(
    src=f"data:image/svg+xml;base64,{b64encode(_GAUGE.encode()).decode()}",
    mime_type="image/svg+xml",
    sizes=["any"],
)

LISTS_KEPT_MS = 3_600_000
"""What is offered is fixed when the process starts: an hour old, it is as good as new."""

_FIXED = CacheHint(ttl_ms=LISTS_KEPT_MS, scope="public")

CACHE_HINTS: Mapping[CacheableMethod, CacheHint] = {
    "tools/list": _FIXED,
    "prompts/list": _FIXED,
    "resources/list": _FIXED,
    "resources/templates/list": _FIXED,
    # A session may change with every call: read again, or subscribe.
    "resources/read": CacheHint(ttl_ms=0, scope="private"),
}
