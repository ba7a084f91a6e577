"""The formats that can be read, and how one is told from another."""

from collections.abc import Sequence
from pathlib import PurePath

from ..errors import TranscriptUnreadable
from .base import Format
from .chat import ANTHROPIC, OPENAI_CHAT
from .claude_code import CLAUDE_CODE
from .cline import CLINE, CLINE_SCREEN
from .codex import CODEX
from .gemini import GEMINI
from .lines import decode_line, decode_whole
from .opencode import OPENCODE
from .openhands import OPENHANDS
from .pi import PI
from .sweagent import MINI_SWE_AGENT, SWE_AGENT

FORMATS: dict[str, Format] = {
    format.name: format
    for format in (
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
}
"""By name. Order is the order in which they are asked; the first that recognises a file has it."""


def format_named(name: str) -> Format:
    if name not in FORMATS:
        unknown = f"No transcript format {name!r}. Use 'auto' or one of {', '.join(FORMATS)}."
        raise TranscriptUnreadable(unknown)
    return FORMATS[name]


def detect(head: bytes, name: str) -> str | None:
    """The format of a file of this name that begins with these bytes, if one can tell."""
    records = first_records(head)
    base = PurePath(name).name
    return next((f.name for f in FORMATS.values() if f.recognises(records, base)), None)


def first_records(head: bytes) -> Sequence[object]:
    """The records at the start of a file: the one value it is, or those of its sound lines."""
    try:
        return [decode_whole(head)]
    except ValueError:
        lines = (decode_line(line) for line in head.split(b"\n"))
        return [record for records, reason in lines if reason is None for record in records]
