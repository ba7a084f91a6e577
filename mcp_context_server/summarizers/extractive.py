"""The embedded summarizer: no model, no network, always there."""

from dataclasses import dataclass

import anyio.to_thread

from mcp_context_server.core.stages.counting import quick_count
from mcp_context_server.core.summary.extractive import extractive_summary
from mcp_context_server.ports import SummaryTask, Written


@dataclass(frozen=True, slots=True)
class ExtractiveSummarizer:
    """Writes the nine sections from the messages themselves, off the event loop."""

    async def summarize(self, task: SummaryTask) -> Written:
        text = await anyio.to_thread.run_sync(_extracted, task)
        return Written(text, is_extracted=True)


def _extracted(task: SummaryTask) -> str:
    ids = {m.id for m in task.messages} | {id for m in task.messages for id in m.calls}
    return extractive_summary(
        task.messages,
        budget_tokens=task.extractive_tokens,
        count=quick_count,
        references=lambda id: id if id in ids else None,
        instructions="\n".join(task.instructions),
        covered=task.covered,
        policy=task.policy,
    )
