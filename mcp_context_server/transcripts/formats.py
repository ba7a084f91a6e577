"""The formats that can be read, and how one is told from another."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import PurePath
from types import MappingProxyType

from ..errors import TranscriptUnreadable
from .base import Format
from .lines import decode_line, decode_whole


@cache
def formats() -> Mapping[str, Format]:
    """The formats by name, in the order in which they are asked; the first to recognise a file.

    The readers are imported here, since a server that follows no transcript needs none.
    """
    from .chat import ANTHROPIC, OPENAI_CHAT
    from .claude_code import CLAUDE_CODE
    from .cline import CLINE, CLINE_SCREEN
    from .codex import CODEX
    from .gemini import GEMINI
    from .opencode import OPENCODE
    from .openhands import OPENHANDS
    from .pi import PI
    from .sweagent import MINI_SWE_AGENT, SWE_AGENT

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
