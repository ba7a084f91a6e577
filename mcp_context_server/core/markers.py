"""Our own markers, and how they lose their power in text that is data.

A conversation may hold anything, our tags and headings included. Where such text
goes into a prompt, a summary or a memory document, `neutralise` changes the marker
just enough that nothing reads it as structure while a person still reads it as it was.
"""

import re

TAGS = (
    "analysis",
    "boundary",
    "cleared-results",
    "compact-boundary",
    "session-memory",
    "summary",
    "system-reminder",
    "transcript",
    "working-set",
)
"""Tags with a meaning in what we write or read back."""

CLEARED = "[Old tool result content cleared]"
"""What stands where a result was cleared."""

MEMORY_HEADINGS = (
    "Session Title",
    "Current State",
    "Task specification",
    "Files and Functions",
    "Workflow",
    "Errors & Corrections",
    "Codebase and System Documentation",
    "Learnings",
    "Key results",
    "Worklog",
)
"""Sections of the session memory."""

_TAG = re.compile(rf"<(\s{{0,8}}/?\s{{0,8}}(?:{'|'.join(TAGS)})\b[^<>\n]{{0,200}})>", re.IGNORECASE)
_PLACEHOLDER = re.compile(re.escape(CLEARED.rstrip("]")), re.IGNORECASE)
_HEADING = re.compile(
    rf"^(\s{{0,3}})(#{{1,6}}[ \t]+(?:\d\.|{'|'.join(map(re.escape, MEMORY_HEADINGS))}))",
    re.MULTILINE | re.IGNORECASE,
)


def neutralise(text: str, *, headings: bool = False) -> str:
    """Text in which none of our tags and placeholders is left, nor our headings where asked.

    Tags get other brackets, placeholders an indefinite article, headings a backslash.
    Applying it twice changes nothing more; any other text comes back as it is.
    """
    text = _TAG.sub("‹\\1›", text) if "<" in text else text
    text = _PLACEHOLDER.sub("[an old tool result, content cleared", text)
    return _HEADING.sub(r"\1\\\2", text) if headings else text
