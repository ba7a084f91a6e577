"""The formats that can be read, and how one is told from another."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import PurePath
from types import MappingProxyType

from mcp_context_server.errors import TranscriptUnreadable
from mcp_context_server.transcripts.base import Format
from mcp_context_server.transcripts.lines import decode_line, decode_whole


@cache
def formats() -> Mapping[str, Format]:
    """The formats by name, in the order in which they are asked; the first to recognise a file.

    The readers are imported here, since a server that follows no transcript needs none.
    """
    from mcp_context_server.transcripts.chat import ANTHROPIC, OPENAI_CHAT
    from mcp_context_server.transcripts.claude_code import CLAUDE_CODE
    from mcp_context_server.transcripts.cline import CLINE, CLINE_SCREEN
    from mcp_context_server.transcripts.codex import CODEX
    from mcp_context_server.transcripts.gemini import GEMINI
    from mcp_context_server.transcripts.opencode import OPENCODE
    from mcp_context_server.transcripts.openhands import OPENHANDS
    from mcp_context_server.transcripts.pi import PI
    from mcp_context_server.transcripts.sweagent import MINI_SWE_AGENT, SWE_AGENT

    known = (
        CLAUDE_CODE,
        CODEX,
        GEMINI,
        OPENCODE,
        PI,
        CLINE_SCREEN,
        CLINE,
        MINI_SWE_AGENT,
        SWE_AGENT,
        OPENHANDS,
        OPENAI_CHAT,
        ANTHROPIC,
    )
    return MappingProxyType({format.name: format for format in known})


def format_named(name: str) -> Format:
    if name not in formats():
        unknown = f"No transcript format {name!r}. Use 'auto' or one of {', '.join(formats())}."
        raise TranscriptUnreadable(unknown)
    return formats()[name]


def detect(head: bytes, name: str) -> str | None:
    """The format of a file of this name that begins with these bytes, if one can tell."""
    records = first_records(head)
    base = PurePath(name).name
    return next((f.name for f in formats().values() if f.recognises(records, base)), None)


def first_records(head: bytes) -> Sequence[object]:
    """The records at the start of a file: the one value it is, or those of its sound lines."""
    try:
        return [decode_whole(head)]
    except ValueError:
        lines = (decode_line(line) for line in head.split(b"\n"))
        return [record for records, reason in lines if reason is None for record in records]
