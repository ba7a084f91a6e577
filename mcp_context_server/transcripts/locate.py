"""Finds the transcript of the agent that is calling us.

Everything is found from what is handed in: the call's metadata, an environment
and a home directory. Metadata goes before environment, environment before
guessing: an environment is inherited and may belong to another session.
"""

import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mcp_context_server.regular import open_regular
from mcp_context_server.transcripts.base import as_record, as_text

TAIL_BYTES = 1 << 20
"""How much of the end of a transcript is searched for a call's id."""
NEWEST_FILES = 24
"""How many of the newest transcripts are searched for a call's id."""
HEAD_BYTES = 1 << 16
"""How much of the beginning of a transcript is read for its session and directory."""
LONGEST_SLUG_UNITS = 200
"""Longer directory names are cut here and a hash is put behind."""

Basis = Literal["call", "session", "directory"]
"""How a transcript was found; the last is a guess when sessions run side by side."""


@dataclass(frozen=True, slots=True)
class Found:
    """A transcript, and what it was found by."""

    path: Path
    format: str
    by: Basis


@dataclass(frozen=True, slots=True)
class Hint:
    """What a host tells about its session in a call's `_meta`."""

    host: str
    session_id: str
    key: str


META_KEYS: tuple[tuple[str, str], ...] = (
    ("threadId", "codex"),
    ("ai.opencode/sessionID", "opencode"),
    ("vscode.conversationId", "vscode"),
    ("antigravity.google/conversation_id", "antigravity"),
)
"""Keys of a call's `_meta` that name the caller's session, and the host that sends each."""

ENVIRONMENT_KEYS: tuple[tuple[str, str], ...] = (
    ("CLAUDE_CODE_SESSION_ID", "claude-code"),
    ("GROK_SESSION_ID", "grok"),
)
"""Environment variables that name the session of the host that started this process."""

TOOL_USE_KEY = "claudecode/toolUseId"
"""The key under which Claude Code sends the id of the call itself."""


def session_hint(meta: Mapping[str, Any], environment: Mapping[str, str]) -> Hint | None:
    """The caller's session as its host names it: by the call if it says, else the environment."""
    turn = as_record(meta.get("x-codex-turn-metadata"))
    if (thread := as_text(turn.get("thread_id"))) and "threadId" not in meta:
        return Hint("codex", thread, "x-codex-turn-metadata")
    for source, keys in ((meta, META_KEYS), (environment, ENVIRONMENT_KEYS)):
        for key, host in keys:
            if session := as_text(source.get(key)):
                return Hint(host, session, key)
    return None


def find_transcript(
    *,
    meta: Mapping[str, Any],
    environment: Mapping[str, str],
    home: Path,
    cwd: Path | None = None,
) -> Found | None:
    """The caller's own transcript: Claude Code's or Codex's; None where nothing tells."""
    call = as_text(meta.get(TOOL_USE_KEY))
    if call and (path := find_call(claude_projects(environment, home), call)):
        return Found(path, "claude-code", "call")
    hint = session_hint(meta, environment)
    if hint is not None and hint.host == "codex":
        path = find_codex_thread(codex_root(environment, home), hint.session_id)
        return Found(path, "codex", "session") if path else None
    if hint is not None and hint.host != "claude-code":
        return None
    return _find_claude_session(environment, home, cwd)


FOLLOWED_HOSTS = frozenset({"claude-code", "codex"})
"""Hosts whose transcripts are found, and name the session."""


def unfollowed_session(meta: Mapping[str, Any], environment: Mapping[str, str]) -> str | None:
    """The caller's session in a host that names it, but whose transcript can't be followed."""
    hint = session_hint(meta, environment)
    if hint is None or hint.host in FOLLOWED_HOSTS or not _is_file_name(hint.session_id):
        return None
    return hint.session_id


def claude_projects(environment: Mapping[str, str], home: Path) -> Path:
    """Where Claude Code keeps its transcripts, a directory for each project."""
    root = environment.get("CLAUDE_CONFIG_DIR")
    return (Path(root) if root else home / ".claude") / "projects"


def codex_root(environment: Mapping[str, str], home: Path) -> Path:
    root = environment.get("CODEX_HOME")
    return Path(root) if root else home / ".codex"


def find_call(projects: Path, tool_use_id: str) -> Path | None:
    """The transcript, of a session or a sub-agent, that holds this call near its end.

    The record may be written a moment after the call is made: ask again shortly.
    """
    newest = _newest(projects.glob("*/**/*.jsonl"))[:NEWEST_FILES]
    return next((path for path in newest if holds_call(path, tool_use_id)), None)


def holds_call(path: Path, tool_use_id: str) -> bool:
    """Whether a transcript holds this call near its end."""
    return tool_use_id.encode() in _tail(path)


def find_session(projects: Path, session_id: str) -> Path | None:
    """The live transcript of a session: the file of that name, or a newer one it went on in.

    After a `/clear` the process keeps its id while records go to another file;
    those records name the process's id as `session_id`.
    """
    if not _is_file_name(session_id):
        return None
    named = _newest(projects.glob(f"*/{session_id}.jsonl"))[:1]
    mark = re.compile(rb'"session_id"\s*:\s*"' + re.escape(session_id.encode()) + b'"')
    for path in _newest(projects.glob("*/*.jsonl"))[:NEWEST_FILES]:
        if path in named:
            return path
        if mark.search(_head(path)) or mark.search(_tail(path)):
            return path
    return named[0] if named else None


def find_newest_in(projects: Path, cwd: str) -> Path | None:
    """The newest transcript of a directory; directories can share a slug, so each is checked."""
    mark = re.compile(rb'"cwd"\s*:\s*' + re.escape(_json_string(cwd)))
    for path in _newest((projects / slug(cwd)).glob("*.jsonl")):
        if mark.search(_head(path)) or mark.search(_tail(path)):
            return path
    return None


def find_codex_thread(root: Path, thread_id: str) -> Path | None:
    """The rollout of a Codex thread; its file's name ends with the thread's id."""
    if not _is_file_name(thread_id):
        return None
    live = (root / "sessions").glob(f"*/*/*/rollout-*{thread_id}.jsonl")
    archived = (root / "archived_sessions").glob(f"**/rollout-*{thread_id}.jsonl")
    return next(iter(_newest((*live, *archived))), None)


def slug(cwd: str) -> str:
    """A directory as Claude Code names its folder: all but ASCII letters and digits become `-`.

    It counts in UTF-16 units, so a character outside the basic plane gives two.
    """
    units = _utf16(cwd)
    name = "".join(chr(unit) if _is_alphanumeric(unit) else "-" for unit in units)
    if len(name) <= LONGEST_SLUG_UNITS:
        return name
    return f"{name[:LONGEST_SLUG_UNITS]}-{_base36(abs(_hash32(units)))}"


def _find_claude_session(
    environment: Mapping[str, str], home: Path, cwd: Path | None
) -> Found | None:
    projects = claude_projects(environment, home)
    session = environment.get("CLAUDE_CODE_SESSION_ID")
    if session and (path := find_session(projects, session)):
        return Found(path, "claude-code", "session")
    directory = environment.get("CLAUDE_PROJECT_DIR") or (str(cwd) if cwd else None)
    if directory and (path := find_newest_in(projects, directory)):
        return Found(path, "claude-code", "directory")
    return None


def _newest(paths: Iterable[Path]) -> list[Path]:
    return [path for _, path in sorted(_dated(paths), key=lambda item: (-item[0], item[1]))]


def _dated(paths: Iterable[Path]) -> Iterator[tuple[int, Path]]:
    for path in paths:
        try:
            found = path.stat()
        except OSError:
            continue
        if stat.S_ISREG(found.st_mode):
            yield found.st_mtime_ns, path


def _head(path: Path) -> bytes:
    try:
        with open_regular(path) as file:
            return file.read(HEAD_BYTES)
    except OSError:
        return b""


def _tail(path: Path) -> bytes:
    try:
        with open_regular(path) as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - TAIL_BYTES))
            return file.read()
    except OSError:
        return b""


def _is_file_name(id: str) -> bool:
    return re.fullmatch(r"[\w.-]{1,200}", id) is not None


def _json_string(text: str) -> bytes:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'.encode("utf-8", "replace")


def _utf16(text: str) -> list[int]:
    data = text.encode("utf-16-le", "surrogatepass")
    return [data[i] | data[i + 1] << 8 for i in range(0, len(data), 2)]


def _is_alphanumeric(unit: int) -> bool:
    return unit < 128 and chr(unit).isalnum()


def _hash32(units: Iterable[int]) -> int:
    """The 31-fold string hash in 32 signed bits."""
    value = 0
    for unit in units:
        value = (value * 31 + unit) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def _base36(number: int) -> str:
    digits = ""
    while True:
        number, digit = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
        if not number:
            return digits
