"""Assembles the pages: a shell, the look, the scripts, and data that can't leave its place."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from html import escape
from importlib import resources
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp_context_server.inspection.reading import Inspection

CONTENT_SECURITY_POLICY = "default-src 'none'; script-src {script}; style-src {style}; {more}"
"""Only the page's own script and style run; `more` says what it may talk to."""


SHARED_SCRIPTS = ("elements.js", "figures.js", "plots.js")
PANEL_SCRIPTS = (*SHARED_SCRIPTS, "transport.js", "panel.js")
REPORT_SCRIPTS = (*SHARED_SCRIPTS, "treemap.js", "report.js")
"""What each page's script is made of, in order."""


@cache
def page() -> str:
    """The context panel: an MCP App, and a page of the HTTP server."""
    return _filled("panel.html", {"style": _text("style.css"), "script": _script(PANEL_SCRIPTS)})


@cache
def page_policy() -> str:
    """The Content-Security-Policy that a server sends with `page`: it talks to that server only."""
    more = "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'"
    return _policy(_script(PANEL_SCRIPTS), f"{more}; frame-ancestors 'none'")


def report(inspection: Inspection) -> str:
    """An inspection as a page with charts, to be opened from a file."""
    script = _script(REPORT_SCRIPTS)
    parts = {
        "title": escape(f"{PurePath(inspection.file).name} – context report"),
        "policy": escape(_policy(script, "base-uri 'none'; form-action 'none'")),
        "style": _text("style.css"),
        "script": script,
        "data": inert(inspection.model_dump(mode="json", exclude_none=True)),
    }
    return _filled("report.html", parts)


def inert(value: Any) -> str:
    """JSON that no HTML parser mistakes for markup, whatever its texts say."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _script(names: Iterable[str]) -> str:
    return "\n".join(map(_text, names))


def _policy(script: str, more: str) -> str:
    return CONTENT_SECURITY_POLICY.format(
        script=_digest(script), style=_digest(_text("style.css")), more=more
    )


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _filled(shell: str, parts: Mapping[str, str]) -> str:
    """A shell with its `{{names}}` filled in, in one pass: what is put in is not looked at."""
    first, *rest = _text(shell).split("{{")
    filled = [first]
    for piece in rest:
        name, _, text = piece.partition("}}")
        filled += (parts[name], text)
    return "".join(filled)


@cache
def _text(name: str) -> str:
    return resources.files("mcp_context_server.panel").joinpath(name).read_text(encoding="utf-8")
