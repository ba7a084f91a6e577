"""What of appended messages is new to a session, and as which entries it comes in."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mcp_context_server.core.edits import original_of
from mcp_context_server.core.intake import Intake, take_in, usage_notes, with_ids, with_usage
from mcp_context_server.core.messages import Message, Messages
from mcp_context_server.errors import InvalidInput
from mcp_context_server.keeping.resident import Live
from mcp_context_server.ports import Numbered, SessionStore
from mcp_context_server.service.aside import aside


async def intake_of(
    store: SessionStore, live: Live, messages: Messages, usage: Mapping[str, Any] | None
) -> Intake:
    """The entries that these messages make, without those the session has already."""
    version = live.session.version
    places = {f"m{version + n}" for n in range(1, len(messages) + 1)}
    given = {message.id for message in messages if message.id}
    calls = {call for message in messages for call in message.calls}
    found = await store.find(live.record.session_id, given | places | calls)

    def taken_in() -> Intake:
        fresh = tuple(message for message in messages if not _is_known(message, found))
        named = with_ids(fresh, version=version, taken=found)
        entries = with_usage(named, usage) if usage else named
        intake = take_in(live.session, entries, taken=calls & set(found))
        ids = iter(named)
        all_ids = tuple(m.id if m.id in found else next(ids).id for m in messages)
        known = tuple(message.id for message in messages if message.id in found)
        notes = (*intake.notes, *usage_notes(entries))
        return replace(intake, message_ids=all_ids, known=known, notes=notes)

    return await aside(len(messages), taken_in)


def _is_known(message: Message, found: Mapping[str, Numbered]) -> bool:
    """Whether the session has this very message. Raises `InvalidInput` where it differs."""
    if not message.id or message.id not in found:
        return False
    if original_of(found[message.id][1], message.id).wire() == message.wire():
        return True
    text = (
        f"The session has another message with the id {message.id!r}; nothing was appended. "
        "Give each message an id of its own, or none."
    )
    raise InvalidInput(text)
