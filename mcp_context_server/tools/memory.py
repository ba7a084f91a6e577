"""Tools of the session memory: notes that outlive every compaction."""

from typing import Annotated, Literal

from mcp.types import CallToolResult
from pydantic import BaseModel, ConfigDict, Field

from mcp_context_server.core.edits import SectionUpdate
from mcp_context_server.memories import Remembering, read_memory, update_memory
from mcp_context_server.results import MemoryRead, MemoryUpdated
from mcp_context_server.tools.sessions import SessionId
from mcp_context_server.tools.surface import Ctx, answer, app, reporting_errors, session_of

Mode = Annotated[
    Literal["replace", "append", "prepend"], Field(description="prepend: Worklog only")
]


class SectionWrite(BaseModel):
    """One of several updates."""

    model_config = ConfigDict(extra="forbid")

    section: str
    content: str
    mode: Mode = "replace"


@reporting_errors
async def session_memory_read(
    ctx: Ctx,
    section: Annotated[str, Field(description="Its heading; all where it is left out")] = "",
    session_id: SessionId = "",
) -> Annotated[CallToolResult, MemoryRead]:
    """Read this session's notes, which outlive every compaction: all, or one section."""
    live = await session_of(ctx, session_id)
    read = await read_memory(app(ctx).service, live, section)
    return answer(read, f"{read.total_tokens:,} tokens; room for {read.room_tokens:,} more.")


@reporting_errors
async def session_memory_update(
    ctx: Ctx,
    section: Annotated[str, Field(description="A heading, as session_memory_read gives them")] = "",
    content: str = "",
    mode: Mode = "replace",
    updates: Annotated[
        list[SectionWrite] | None, Field(description="Several sections, all or none")
    ] = None,
    trim: Annotated[bool, Field(description="Cut the oldest where it doesn't fit")] = False,
    expected_version: Annotated[
        int | None, Field(description="Refuse if the memory changed since")
    ] = None,
    session_id: SessionId = "",
) -> Annotated[CallToolResult, MemoryUpdated]:
    """Note what must outlive compaction: task, state, files, corrections, results, worklog."""
    live = await session_of(ctx, session_id)
    one = [SectionWrite(section=section, content=content, mode=mode)] if section else []
    asked = Remembering(
        updates=tuple(
            SectionUpdate(section=each.section, content=each.content, mode=each.mode)
            for each in (*one, *(updates or ()))
        ),
        trim=trim,
        expected_version=expected_version,
    )
    updated = await update_memory(app(ctx).service, live, asked)
    names = ", ".join(s.name for s in updated.sections)
    return answer(updated, f"{names} written; room for {updated.room_tokens:,} more tokens.")
