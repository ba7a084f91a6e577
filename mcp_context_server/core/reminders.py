"""Calls of deferred tools that were not loaded, and what to answer them."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from mcp_context_server.core.edits import position
from mcp_context_server.core.messages import Message, is_call
from mcp_context_server.core.session import Session
from mcp_context_server.core.stages.standing import referenced_tools
from mcp_context_server.core.toolsearch.search import resolve, schema_reminder
from mcp_context_server.core.toolsearch.toolset import Toolset


@dataclass(frozen=True, slots=True)
class Reminder:
    """What to answer a call whose tool the model could not see."""

    tool_use_id: str
    tool: str
    text: str


def reminders(session: Session, message_ids: Collection[str]) -> tuple[Reminder, ...]:
    """For the calls in these messages that wait for an answer, or failed.

    A call that went well needs none: whatever the model guessed was right.
    """
    tools = session.tools
    if tools is None or not tools.deferral.deferred:
        return ()
    called = dict(_calls(session, message_ids))
    if not called:
        return ()
    loaded = {*tools.in_prompt, *referenced_tools(session.view)}
    return tuple(_reminders(tools, called, loaded))


def _calls(session: Session, message_ids: Collection[str]) -> Iterator[tuple[str, str]]:
    """Ids and names of the calls that these messages leave open, or answer with an error."""
    for id in message_ids:
        place = position(session.view, id, session.ledger.places)
        if place is None:
            continue
        yield from _open_calls(session, session.view[place])
        for result in session.ledger.results[place]:
            if result.block.get("is_error"):
                yield result.id, result.tool


def _open_calls(session: Session, message: Message) -> Iterator[tuple[str, str]]:
    for block in message.blocks if message.calls else ():
        id, name = block.get("id"), block.get("name")
        if is_call(block) and id in session.open_calls and isinstance(name, str):
            yield str(id), name


def _reminders(
    tools: Toolset, called: dict[str, str], loaded: Collection[str]
) -> Iterator[Reminder]:
    for id, name in called.items():
        hits = resolve(tools.catalog, name)
        text = schema_reminder(tools.catalog, name)
        if text is not None and hits[0] not in loaded:
            yield Reminder(id, hits[0], text)
