"""The session memory, read and written."""

from collections.abc import Collection, Sequence

from mcp_context_server.core.memory.document import render, render_section
from mcp_context_server.core.memory.notes import (
    Budget,
    Planned,
    SessionMemory,
    budget_of,
    sizes,
    total_tokens,
)
from mcp_context_server.core.session import Session
from mcp_context_server.results import (
    Aside,
    MemoryRead,
    MemorySection,
    MemoryUpdated,
)


def memory_sizes(memory: SessionMemory, budget: Budget) -> tuple[MemorySection, ...]:
    """Every section with what it takes and the room it has left."""
    return tuple(
        MemorySection(name=size.name, tokens=size.tokens, room=size.room)
        for size in sizes(memory, budget)
    )


def memory_read_of(
    session_id: str, session: Session, section: str, notes: Sequence[str]
) -> MemoryRead:
    """The answer of `session_memory_read`: all of the document, or one section as it was given."""
    memory, budget = session.memory, budget_of(session.policy, session.family)
    total = total_tokens(memory, budget)
    return MemoryRead(
        session_id=session_id,
        markdown=render_section(memory, section) if section else render(memory),
        sections=tuple(s for s in memory_sizes(memory, budget) if section in ("", s.name)),
        total_tokens=total,
        room_tokens=max(0, budget.total_tokens - total),
        version=memory.version,
        origin=memory.origin or None,
        notes=tuple(notes) or None,
    )


def memory_updated_of(
    session_id: str,
    session: Session,
    names: Collection[str],
    planned: Planned,
    notes: Sequence[str],
) -> MemoryUpdated:
    """The answer of `session_memory_update`; `names` are the sections that were written."""
    budget, policy = budget_of(session.policy, session.family), session.policy
    total = total_tokens(session.memory, budget)
    written = tuple(s for s in memory_sizes(session.memory, budget) if s.name in names)
    low = policy.memory_low_room_fraction * budget.section_tokens
    full = [
        f"{s.name} has room for {s.room:,} more tokens: shorten it, keeping what still matters."
        for s in written
        if s.room < low
    ]
    masked = [f"Key-shaped strings in {name} were masked." for name in planned.masked]
    return MemoryUpdated(
        session_id=session_id,
        sections=written,
        total_tokens=total,
        room_tokens=max(0, budget.total_tokens - total),
        version=session.memory.version,
        set_aside=tuple(
            Aside(section=a.section, why=a.why, tokens=a.tokens, reference=a.reference)
            for a in planned.set_aside
        )
        or None,
        notes=(*full, *masked, *notes) or None,
    )
