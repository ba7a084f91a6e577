"""Errors, as a tree. Each message says what to do next, since a model will read it.

ContextServerError
├── InvalidInput          an argument can't be used; nothing was changed
│   ├── InvalidTool       a tool definition is malformed; none was registered
│   ├── DuplicateTool     a tool's name is taken by another definition
│   ├── CatalogFull       more tools than a session takes
│   └── MemoryFull        more text than the session memory takes; none was written
├── SessionNotFound
├── SessionRequired       no session was named and none can be guessed
├── VersionConflict       the session moved on since the version the caller saw
├── AlreadyAppended       an append with this key was applied before; nothing was appended
├── CatalogMissing        tool definitions were deleted before the entry that names them came
├── MemoryConflict        the session memory was written since the version the caller saw
├── ReferenceNotFound
├── CountUnavailable      no exact count can be had; an estimate is answered instead
├── NothingToUndo         no edit of that kind stands in the session
├── SummaryFailed         no summary that can be used; history is as it was
├── TranscriptUnreadable
├── HostFileUnusable      a host's settings file can't be read or changed; it is as it was
└── StoreUnavailable      the state can't be read or written
"""

BRIEF_CHARS = 120
"""Longest quotation of what a caller gave."""


def brief(given: object) -> str:
    """What a caller gave, text in quotes, its middle left out where it is long."""
    shown = repr(given)
    half = BRIEF_CHARS // 2
    return shown if len(shown) <= BRIEF_CHARS else f"{shown[:half]}…{shown[-half:]}"


class ContextServerError(Exception):
    """Base of every error this package raises on purpose."""


class InvalidInput(ContextServerError):
    """An argument that can't be used; nothing was changed."""


class InvalidTool(InvalidInput):
    def __init__(self, tool: str, fault: str) -> None:
        super().__init__(f"{tool} {fault}. Nothing was registered: mend it and register again.")
        self.tool, self.fault = tool, fault


class CatalogFull(InvalidInput):
    def __init__(self, tools: int, most: int) -> None:
        super().__init__(
            f"{tools} tools are more than the {most} a session takes; nothing was registered. "
            "Leave out servers that this session doesn't need."
        )
        self.tools, self.most = tools, most


class MemoryFull(InvalidInput):
    """`section` is None where it is the whole memory that would be too large."""

    def __init__(self, section: str | None, tokens: int, limit: int, room: int) -> None:
        what = f"Section {section!r}" if section else "The session memory"
        super().__init__(
            f"{what} would take {tokens:,} tokens; the limit is {limit:,}, and there is room for "
            f"{room:,} more. Nothing was written. Shorten the content, `replace` a section by a "
            "shorter text, or pass `trim` to have the oldest cut."
        )
        self.section, self.tokens, self.limit, self.room = section, tokens, limit, room


class DuplicateTool(InvalidInput):
    def __init__(self, name: str, server: str, other_server: str) -> None:
        if server == other_server:
            advice = "Register with `replace` to put the new one in its place."
        else:
            advice = (
                f"One is of server {server!r}, one of {other_server!r}: give each the name that "
                "the model sees, like `mcp__server__tool`."
            )
        super().__init__(
            f"Two different definitions are named {name!r}; nothing was registered. {advice}"
        )
        self.name, self.server, self.other_server = name, server, other_server


class SessionNotFound(ContextServerError):
    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"No session {brief(session_id)}. Open one with `session_open`, or leave session_id "
            "out where the host has one conversation."
        )
        self.session_id = session_id


class SessionRequired(ContextServerError):
    def __init__(self) -> None:
        super().__init__(
            "No session_id was given, and this connection has no session of its own. "
            "Call `session_open`, then pass its session_id to every call."
        )


class VersionConflict(ContextServerError):
    def __init__(self, session_id: str, expected: int, actual: int) -> None:
        super().__init__(
            f"Session {brief(session_id)} is at version {actual}, not {expected}; nothing was "
            "written. Read its status and try again with that version."
        )
        self.session_id, self.expected, self.actual = session_id, expected, actual


class AlreadyAppended(ContextServerError):
    """What the first append with this key came to is kept as its receipt."""

    def __init__(self, session_id: str, key: str) -> None:
        super().__init__(
            f"An append with the key {brief(key)} was applied to session {session_id!r} before; "
            "nothing was appended."
        )
        self.session_id, self.key = session_id, key


class CatalogMissing(ContextServerError):
    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"The tool definitions of session {brief(session_id)} were deleted with the last "
            "session that used them; nothing was written. Register the tools again."
        )
        self.session_id = session_id


class MemoryConflict(ContextServerError):
    def __init__(self, expected: int, actual: int) -> None:
        super().__init__(
            f"The session memory is at version {actual}, not {expected}; nothing was written. "
            "Read it with `session_memory_read` and try again with that version, or leave "
            "`expected_version` out where the update holds whatever was written in between."
        )
        self.expected, self.actual = expected, actual


class ReferenceNotFound(ContextServerError):
    def __init__(self, session_id: str, reference: str) -> None:
        super().__init__(
            f"Session {brief(session_id)} has nothing under {brief(reference)}. "
            "References stand in placeholders and in the answers of `snip` and `recall`."
        )
        self.session_id, self.reference = session_id, reference


class CountUnavailable(ContextServerError):
    """An exact count that can't be had; the message is the reason, as the end of a sentence."""


class NothingToUndo(ContextServerError):
    def __init__(self, what: str) -> None:
        super().__init__(
            f"No {what} stands in this session, so there is nothing to undo. "
            "`context_status` with `detail` lists the edits that do."
        )
        self.what = what


class SummaryFailed(ContextServerError):
    """No summary that can be used came of a summarizer; history is as it was."""

    def __init__(self, reason: str, *, fault: str = "error") -> None:
        super().__init__(reason)
        self.reason, self.fault = reason, fault


class TranscriptUnreadable(ContextServerError):
    """A transcript that can't be found, opened or recognised."""


class HostFileUnusable(ContextServerError):
    def __init__(self, path: object, reason: str) -> None:
        super().__init__(
            f"{str(path)!r} can't be used: {reason}. Nothing was changed. Mend the file, or add "
            "by hand what `mcp-context-server hosts show` prints."
        )
        self.path, self.reason = path, reason


class StoreUnavailable(ContextServerError):
    """The store can't be read or written; the cause is on `__cause__`."""
