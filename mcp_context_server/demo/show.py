"""The demonstration: the recorded conversation, from an empty window to status and advice."""

import time
from collections.abc import Iterator

from rich.console import Console, Group
from rich.text import Text

from mcp_context_server.answers import status_of
from mcp_context_server.core.edits import Configure
from mcp_context_server.core.messages import Message, Messages, is_prompt, message_text
from mcp_context_server.demo import recording
from mcp_context_server.inspection.display import (
    breakdown_table,
    largest_table,
    state_style,
    status_panel,
)
from mcp_context_server.keeping.resident import Live
from mcp_context_server.results import Status
from mcp_context_server.service.opening import Opening
from mcp_context_server.service.recalling import Wanted
from mcp_context_server.service.sessions import ContextService
from mcp_context_server.stores.memory import MemoryStore

DEMO_MODEL = "claude-sonnet-4-5"
DEMO_WINDOW_TOKENS = 72_000
"""Small, so that an hour's work fills it."""


async def show(console: Console) -> None:
    """Play the recording through a server of its own, and say what it would say."""
    console.print(
        f"[bold]A recorded hour of a coding agent[/], in a window of {DEMO_WINDOW_TOKENS:,} tokens."
        "\nNothing is sent anywhere: no key, no model, no network.\n"
    )
    service = ContextService(store=MemoryStore(), clock=time.time, new_id=lambda: "demo")
    live, _ = await service.open(_opening())
    reached = "ok"
    for step in steps(recording()):
        live, _ = await service.append("demo", "", step)
        status = status_of(live.record, live.session, detail=False)
        if is_prompt(step[0]) or status.state != reached:
            console.print(_line(step[0], status), no_wrap=True, overflow="ellipsis")
            reached = status.state
    await _close(service, live, console)


def steps(messages: Messages) -> Iterator[Messages]:
    """The conversation as an agent loop hands it over: a prompt, or a response with its results."""
    step: list[Message] = []
    for message in messages:
        if step and (message.role == "assistant" or is_prompt(message)):
            yield tuple(step)
            step = []
        step.append(message)
    if step:
        yield tuple(step)


def _opening() -> Opening:
    configure = Configure(model=DEMO_MODEL, context_window=DEMO_WINDOW_TOKENS)
    return Opening(session_id="demo", configure=configure)


def _line(message: Message, status: Status) -> Text:
    """A prompt, or the response at which the state changed, and how full the window was."""
    width, style = 30, state_style(status.state)
    full = round(width * status.percent_used / 100)
    said = " ".join(message_text(message).split()) or "(calls tools)"
    who = "you  " if message.role == "user" else "agent"
    return Text.assemble(
        (f"{status.percent_used:>3} % ", style),
        ("█" * full, style),
        ("░" * (width - full), "dim"),
        (f"  {status.state:<12} ", style),
        (f"{who} ", "dim"),
        said[:70],
    )


async def _close(service: ContextService, live: Live, console: Console) -> None:
    status = status_of(live.record, live.session, detail=False)
    console.print("", Group(status_panel(status), "", breakdown_table(status)))
    console.print("", largest_table(status))
    first = status.largest[0]
    recalled = await service.recall(live, Wanted(first.tool_use_id))
    console.print(
        f"\nEverything stays: `recall` of {first.tool_use_id} gives its "
        f"{recalled.total:,} characters back."
    )
