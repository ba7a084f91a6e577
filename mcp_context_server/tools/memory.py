"""Tools of the session memory: notes that outlive every compaction."""

from typing import Annotated, Literal

from mcp.types import CallToolResult
from pydantic import BaseModel, ConfigDict, Field

from mcp_context_server.core.edits import SectionUpdate
from mcp_context_server.results import MemoryRead, MemoryUpdated
from mcp_context_server.service.memories import Remembering, read_memory, update_memory
from mcp_context_server.tools.parameters import Count, Name
from mcp_context_server.tools.surface import Ctx, answer, app, session_of

Mode = Literal["replace", "append", "prepend"]


class SectionWrite(BaseModel):
    """One of several updates."""

    model_config = ConfigDict(extra="forbid")

    section: Name
    content: str
    mode: Mode = "replace"


async def session_memory_read(
    ctx: Ctx,
    section: Name = "",
    session_id: Name = "",
) -> Annotated[CallToolResult, MemoryRead]:
    """Read your notes on this session; first of all after a compaction."""
    live = await session_of(ctx, session_id)
    read = await read_memory(app(ctx).service, live, section)
    return answer(read, f"{read.total_tokens:,} tokens; room for {read.room_tokens:,} more.")


async def session_memory_update(
    ctx: Ctx,
    section: Name = "",
    content: str = "",
    mode: Mode = "replace",
    updates: Annotated[
        list[SectionWrite] | None, Field(description="Several: {section, content, mode}")
    ] = None,
    trim: bool = False,
    expected_version: Count | None = None,
    session_id: Name = "",
) -> Annotated[CallToolResult, MemoryUpdated]:
    """Note what must outlive compaction: the task, its state, corrections, results."""
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
