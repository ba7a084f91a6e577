"""The files that a compaction brings back: from disk where allowed, else as they were read."""

from mcp_context_server.core.edits import Entry, original_of
from mcp_context_server.core.messages import result_text
from mcp_context_server.core.stages.contents import Content, is_same, with_files
from mcp_context_server.core.stages.remembering import Memory
from mcp_context_server.core.stages.restore import wanted_files
from mcp_context_server.core.stages.selection import Selection, kept_of
from mcp_context_server.core.stages.turn import Turn
from mcp_context_server.errors import InvalidInput
from mcp_context_server.files import FileReader
from mcp_context_server.keeping.resident import Live
from mcp_context_server.service.sessions import ContextService


async def contents(
    service: ContextService, live: Live, turn: Turn, chosen: Selection, memory: Memory
) -> tuple[Content, ...]:
    """The files to bring back: from disk where that is allowed, else as they were read."""
    uses = wanted_files(memory, kept_of(turn.view, chosen), turn)
    references = [use.last_call_id for use in uses]
    stored = await service.store.find(live.record.session_id, references)
    found: list[Content] = []
    for use in uses:
        entry = stored.get(use.last_call_id)
        seen = "" if entry is None else _text_read(entry[1], use.last_call_id)
        found.append(
            await _content(service.files, use.path, seen, is_read=not use.changed_since_read)
        )
    return with_files(found, turn.policy.restored_files)


async def _content(files: FileReader, path: str, seen: str, *, is_read: bool) -> Content:
    state = await files.state(path)
    if state == "missing":
        return Content(path, "", "gone")
    if state == "readable":
        try:
            text = await files.read(path)
        except InvalidInput:
            return Content(path, seen, "stored")
        return Content(path, text, "disk", has_changed=is_read and not is_same(seen, text))
    return Content(path, seen, "stored") if seen else Content(path, "", "gone")


def _text_read(entry: Entry, call_id: str) -> str:
    """The text that a reading gave; a picture has none, and is not brought back."""
    blocks = original_of(entry, call_id).blocks
    return next((result_text(b) for b in blocks if b.get("tool_use_id") == call_id), "")
