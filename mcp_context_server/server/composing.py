"""The compactor that the settings ask for: which summarizers there are, and their order."""

from collections.abc import Mapping
from pathlib import Path

from mcp_context_server.ports import Summarizer, SummarizerName
from mcp_context_server.service.compacting import Compactor
from mcp_context_server.service.sessions import ContextService
from mcp_context_server.settings import Settings
from mcp_context_server.summarizers.anthropic import AnthropicSummarizer
from mcp_context_server.summarizers.endpoint import EndpointSummarizer
from mcp_context_server.summarizers.extractive import ExtractiveSummarizer


def build_compactor(
    settings: Settings, service: ContextService, *, project: Path | None = None
) -> Compactor:
    """The compactor that the settings ask for, with what can summarize.

    `project` is the directory whose instruction files may say how to summarize.
    """
    made: dict[SummarizerName, Summarizer] = {}
    if settings.summary_url:
        key = settings.summary_key.get_secret_value() if settings.summary_key else ""
        made["endpoint"] = EndpointSummarizer(settings.summary_url, settings.summary_model, key)
    if settings.anthropic_api_key:
        key, model = settings.anthropic_api_key.get_secret_value(), settings.summary_model
        made["anthropic"] = AnthropicSummarizer(key, "" if settings.summary_url else model)
    made["extractive"] = ExtractiveSummarizer()
    order: list[SummarizerName] = []
    for name in settings.summarizers:
        order += _NAMES[name]
    return Compactor(
        service=service,
        summarizers=made,
        order=tuple(order),
        instruction_files=tuple(str(project / name) for name in INSTRUCTION_FILES)
        if project
        else (),
    )


_NAMES: Mapping[str, tuple[SummarizerName, ...]] = {
    "agent": ("agent",),
    "sampling": ("sampling",),
    "anthropic": ("endpoint", "anthropic"),
    "extractive": ("extractive",),
}
"""Names of the chain that stand for more than one: an endpoint, where one is set, goes first."""

INSTRUCTION_FILES = ("CLAUDE.md", "AGENTS.md", "GEMINI.md")
"""Files of a project whose section “Compact Instructions” is added to every prompt."""
