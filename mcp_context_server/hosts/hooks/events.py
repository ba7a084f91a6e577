"""What each of Claude Code's events is answered with; None is no answer."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp_context_server.hosts.hooks.figures import Figures, Level, figures
from mcp_context_server.hosts.hooks.state import State
from mcp_context_server.hosts.hooks.tail import (
    Reading,
    Record,
    as_items,
    as_object,
    blocks,
    is_boundary,
    reading,
    records,
    tokens_of,
)

Answer = dict[str, Any] | str | None
"""JSON for the host, or text where the host takes text."""

MEMORY_TOOL = "session_memory_update"
CLEARED_SECONDS = 120
"""How long after a conversation's end a new one in its directory counts as its continuation."""
AFTERWARDS_BYTES = 1 << 15
"""What a host may add to a transcript after a turn's end without anything being said in it."""
SCAN_BYTES = 1 << 20
"""How far back is looked for what a summary must keep."""
REQUEST_CHARS = 300
HOST = "claude-code"


@dataclass(frozen=True, slots=True)
class Event:
    """What the host told on stdin, and where it is heard."""

    given: Mapping[str, Any]
    environ: Mapping[str, str]
    state: State
    now: float
    prepare: Callable[[Path, str, str], None]
    """Work out in the background what a conversation hands over, for the holder of a ticket."""
    hand_over: Callable[[Path, str], str]
    """The same at once."""

    @property
    def session(self) -> str:
        return self.text("session_id")

    @property
    def transcript(self) -> Path:
        return Path(self.text("transcript_path"))

    def text(self, name: str) -> str:
        value = self.given.get(name)
        return value if isinstance(value, str) else ""

    def figures(self, model: str) -> Figures:
        window = self.state.read("session", self.session).get("window")
        known = window if isinstance(window, int) else None
        return figures(model or self.text("model"), known, self.environ, self.state)


def session_start(event: Event) -> Answer:
    """After a compaction or `/clear`: what the conversation knew before."""
    match event.given.get("source"):
        case "compact":
            before = event.transcript, event.session
        case "clear":
            before = _cleared(event)
        case _:
            return None
    if before is None:
        return None
    transcript, session = before
    text = _prepared(event, transcript, session) or event.hand_over(transcript, session)
    return _context("SessionStart", text) if text else None


def _prepared(event: Event, transcript: Path, session: str) -> str:
    """What was prepared for this moment, which is used up by it."""
    kept = event.state.read("handover", session)
    if not kept:
        return ""
    event.state.forget("handover", session)
    return str(kept.get("text", "")) if _is_recent(kept, transcript) else ""


def _is_recent(kept: Mapping[str, Any], transcript: Path) -> bool:
    """Whether hardly anything was said since it was prepared, where it was at a turn's end."""
    covered = kept.get("covered_bytes")
    return not isinstance(covered, int) or _size(transcript) - covered <= AFTERWARDS_BYTES


def _size(transcript: Path) -> int:
    return transcript.stat().st_size if transcript.is_file() else 0


def _cleared(event: Event) -> tuple[Path, str] | None:
    """The conversation that has just ended in this directory."""
    kept = event.state.read("cleared", event.text("cwd"))
    transcript, session, at = (kept.get(name) for name in ("transcript", "session", "at"))
    if not (isinstance(transcript, str) and isinstance(session, str) and isinstance(at, int)):
        return None
    event.state.forget("cleared", event.text("cwd"))
    return (Path(transcript), session) if event.now - at <= CLEARED_SECONDS else None


def session_end(event: Event) -> Answer:
    """Before `/clear`: say where the next conversation finds what this one knew."""
    if event.given.get("reason") == "clear" and event.transcript.is_file():
        kept = {
            "transcript": str(event.transcript),
            "session": event.session,
            "at": int(event.now),
        }
        prepared = event.state.read("handover", event.session)
        if "covered_bytes" not in prepared or not _is_recent(prepared, event.transcript):
            _prepare(event)
        event.state.keep("cleared", event.text("cwd"), kept)
    return None


def _prepare(event: Event, **facts: int) -> None:
    """Have it prepared; what was prepared before is out of date from now on.

    Who needs it before it is ready takes the ticket away, and what comes then is dropped.
    """
    ticket = str(event.now)
    event.state.keep("handover", event.session, {"ticket": ticket, **facts})
    event.prepare(event.transcript, event.session, ticket)


def pre_compact(event: Event) -> Answer:
    """What the summary must keep; and what comes back after it is prepared meanwhile."""
    event.state.change("session", event.session, warned="ok")
    _prepare(event)
    return "\n".join((KEEP, *_worth_keeping(event)))


KEEP = (
    "Carry over word for word: what the user asked for, corrected and ruled out; exact file paths, "
    "names, commands, ids, figures and error messages; decisions with their reasons; what was "
    "tried and did not work; the open to-dos; and what was being done at the very end, with the "
    "next step. Don't retell what tools printed: it can be read again."
)


def _worth_keeping(event: Event) -> Iterator[str]:
    """Files changed, open to-dos and the newest request, from the end of the transcript."""
    from mcp_context_server.core.tool_roles import tool_path, tool_role

    changed, todos, asked = dict[str, None](), list[str](), ""
    for record in records(event.transcript, most_bytes=SCAN_BYTES):
        if is_boundary(record):
            break
        for block in reversed(blocks(record)):
            name, given = str(block.get("name", "")), as_object(block.get("input"))
            role = tool_role(name, host=HOST) if block.get("type") == "tool_use" else None
            if role in ("edit", "write") and (path := tool_path(given)):
                changed[path] = None
            if role == "todo" and not todos:
                todos = list(_open_todos(given))
        asked = asked or _asked(record)
    most = event.figures("").hook_named_files
    if changed:
        yield "Files changed: " + ", ".join(_safe(path, 200) for path in list(changed)[:most])
    if todos:
        yield "Open to-dos: " + "; ".join(todos[:most])
    if asked:
        yield f"The user's newest request: “{_safe(asked, REQUEST_CHARS)}”"


def _open_todos(given: Record) -> Iterator[str]:
    for item in map(as_object, as_items(given.get("todos"))):
        text = item.get("content")
        if isinstance(text, str) and item.get("status") != "completed":
            yield _safe(text, 120)


def _asked(record: Record) -> str:
    """What a person typed, if it is that."""
    is_hosts_own = record.get("isMeta") is True or record.get("isCompactSummary") is True
    if record.get("type") != "user" or is_hosts_own:
        return ""
    texts = [block.get("text") for block in blocks(record) if block.get("type") == "text"]
    text = next((t for t in texts if isinstance(t, str)), "")
    return "" if text.startswith(("<", "[Request interrupted")) else text


def user_prompt_submit(event: Event) -> Answer:
    """A warning when the window nears its end: once, and again when it gets worse."""
    now = reading(event.transcript) if event.transcript.is_file() else Reading(0, "", "estimate")
    bounds = event.figures(now.model)
    level = bounds.level(now.used_tokens)
    warned = event.state.read("session", event.session).get("warned", "ok")
    event.state.change("session", event.session, warned=level)
    if _LEVELS.index(level) <= _LEVELS.index(warned if warned in _LEVELS else "ok"):
        return None
    text = (
        f"{bounds.percent(now.used_tokens)} % of the context window is in use "
        f"({now.used_tokens:,} of {bounds.effective_window:,} tokens"
        f"{'' if now.source == 'usage' else ', estimated'}); {_DUE[level]}"
    )
    return {**_context("UserPromptSubmit", f"{text} {ADVICE}"), "systemMessage": text}


_LEVELS: tuple[Level, ...] = ("ok", "warning", "auto_compact", "blocking")
_DUE: Mapping[Level, str] = {
    "ok": "there is room.",
    "warning": "a compaction is near.",
    "auto_compact": "a compaction is due.",
    "blocking": "hardly anything more fits.",
}
ADVICE = (
    f"Before larger work, write down with `{MEMORY_TOOL}` what must not be lost, read no more "
    "than is needed, and propose `/compact` at the next work boundary."
)


def stop(event: Event) -> Answer:
    """Ask for the session memory when it is due; else the turn is over.

    Then what a `/clear` hands over is prepared: after one there is no time for it.
    """
    if not event.transcript.is_file():
        return None
    if answer := _memory_asked_for(event):
        return answer
    _prepare(event, covered_bytes=_size(event.transcript))
    return None


def _memory_asked_for(event: Event) -> Answer:
    """Never in answer to itself, nor twice for one."""
    if event.given.get("stop_hook_active") is True:
        return None
    bounds = event.figures("")
    asked = event.state.read("session", event.session).get("asked_at")
    since = _since_update(event.transcript, asked if isinstance(asked, str) else "", bounds)
    if since.tokens < bounds.hook_memory_tokens or since.calls < bounds.memory_again_calls:
        return None
    event.state.change("session", event.session, asked_at=since.newest)
    reason = (
        f"The session memory is due: more than {bounds.hook_memory_tokens:,} tokens since it was "
        f"last written. Bring it up to date with `{MEMORY_TOOL}` (current state, decisions, errors "
        "and how they were mended, files), in few words. Where that tool is not at hand, just stop."
    )
    return {"decision": "block", "reason": reason}


@dataclass(frozen=True, slots=True)
class Since:
    """What came since the memory was written or asked for, as far as it matters."""

    tokens: int
    calls: int
    newest: str
    """The newest record's id."""


def _since_update(transcript: Path, asked: str, bounds: Figures) -> Since:
    tokens, calls, newest = 0, 0, ""
    for record in records(transcript):
        id = str(record.get("uuid", ""))
        newest = newest or id
        names = [str(b.get("name", "")) for b in blocks(record) if b.get("type") == "tool_use"]
        is_written = any(name.endswith(MEMORY_TOOL) for name in names)
        is_enough = tokens >= bounds.hook_memory_tokens and calls >= bounds.memory_again_calls
        if is_written or is_enough or (asked and id == asked):
            break
        tokens, calls = tokens + tokens_of(record), calls + len(names)
    return Since(tokens, calls, newest)


EVENTS: Mapping[str, Callable[[Event], Answer]] = {
    "session-start": session_start,
    "session-end": session_end,
    "pre-compact": pre_compact,
    "user-prompt-submit": user_prompt_submit,
    "stop": stop,
}
"""The events by the name that `hook` takes."""


def _context(event: str, text: str) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


def _safe(text: str, chars: int) -> str:
    """A conversation's text on one line, without secrets, and without power as our markers."""
    from mcp_context_server.core.markers import neutralise
    from mcp_context_server.core.redact import redact
    from mcp_context_server.core.text import one_line

    return redact(neutralise(one_line(text, chars)))
