"""The question to a host's own model: a summary, by the protocol's sampling."""

from typing import Literal

from mcp.server.mcpserver import Sample
from mcp.types import SamplingMessage, TextContent

from mcp_context_server.core.stages.compaction import written_budget
from mcp_context_server.core.stages.selecting import select
from mcp_context_server.core.stages.selection import Nothing, Wish
from mcp_context_server.core.stages.turn import turn_of
from mcp_context_server.core.summary.shown import flattened, without_media
from mcp_context_server.keeping.resident import Live
from mcp_context_server.ports import SummarizerName
from mcp_context_server.service.compacting import Asked, Compactor
from mcp_context_server.service.compacting.originals import summarized_messages
from mcp_context_server.summarizers.calls import SYSTEM


async def sampling_question(
    compactor: Compactor,
    live: Live,
    wish: Wish,
    instructions: str,
    summarizer: SummarizerName | Literal["auto"],
) -> Sample | None:
    """What the host's model is asked; None where it isn't its turn, or there is nothing.

    It depends on the messages, the wish and the instructions alone, so that it reads the
    same each time the call is made again.
    """
    if summarizer == "auto" and not compactor.asks_host_first:
        return None
    asked = Asked(wish=wish, instructions=instructions, summarizer=summarizer)
    if compactor.is_served_by_memory(live, asked):
        return None
    wishes = (instructions,) if instructions.strip() else ()
    prompt = compactor.prompt(live, wish, wishes)
    turn = turn_of(live.session, compactor.service.moment(), live.record.kind)
    chosen = select(turn, wish)
    if prompt is None or isinstance(chosen, Nothing):
        return None
    store, session_id = compactor.service.store, live.record.session_id
    messages = await summarized_messages(store, session_id, turn, chosen)
    story = flattened(without_media(messages), family=live.session.family, policy=turn.policy)
    text = f"<transcript>\n{story}\n</transcript>\n\n{prompt}"
    message = SamplingMessage(role="user", content=TextContent(type="text", text=text))
    return Sample([message], max_tokens=written_budget(turn, chosen), system_prompt=SYSTEM)
