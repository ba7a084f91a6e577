"""Rules about compaction by the API, context management, and parameters that are gone."""

from collections.abc import Iterator, Mapping

from mcp_context_server.core.rules.request import Fault, Request, Site, list_of, object_of, text_of

SAMPLING = ("temperature", "top_p", "top_k")
"""Parameters that the API of 2026-10-21 refuses."""

ON_DEMAND_BETA = "compact-2026-09-04"

EDIT_BETAS: Mapping[str, str] = {
    "clear_thinking_20251015": "context-management-2025-06-27",
    "clear_tool_uses_20250919": "context-management-2025-06-27",
    "compact_20260112": "compact-2026-01-12",
}
"""The beta that each edit needs."""


def check_sampling(request: Request) -> Iterator[Fault]:
    """No sampling parameters."""
    for name in SAMPLING:
        if request.param(name) is not None:
            yield Fault("R24", name, "the API takes it no more: leave it out")


def check_edits(request: Request) -> Iterator[Fault]:
    """Edits that the API is asked for: known to model and headers, clearing of thinking first."""
    edits = list_of(object_of(request.param("context_management")).get("edits"))
    for number, edit in enumerate(edits):
        kind, path = text_of(object_of(edit).get("type")), f"context_management.edits.{number}"
        if kind == "clear_thinking_20251015" and number:
            yield Fault("R37", path, "clearing of thinking comes first in `edits`: move it")
        if kind == "clear_thinking_20251015" and not _thinks(request):
            what = "thinking is off, so there is none to clear: leave this out"
            yield Fault("R37", path, what)
        beta = EDIT_BETAS.get(kind)
        if beta and request.terms.betas is not None and beta not in request.terms.betas:
            yield Fault("R37", path, f"only with the beta {beta}: send it or leave this out")
    if edits and not request.terms.traits.supports_context_management:
        what = "the API does not edit this model's context: leave it out"
        yield Fault("R37", "context_management", what)


def _thinks(request: Request) -> bool:
    """Whether thinking is on: asked for, or of a model that can't do without."""
    mode = object_of(request.param("thinking")).get("type")
    if mode is None:
        return "disabled" not in request.terms.traits.thinking_types
    return mode != "disabled"


def check_compaction_blocks(request: Request) -> Iterator[Fault]:
    """A block that stands for what was compacted opens the conversation, once, and says it."""
    sites = request.of_kind("compaction")
    for site in sites:
        if site.block.get("content") == "":
            yield Fault("R61", site.path, "a compaction block can't be empty: remove it")
    for number, site in enumerate(_on_demand(sites)):
        if number:
            yield Fault("R61", site.path, "only one compaction block may stand: keep the latest")
        elif (site.message, site.at) != (0, (0,)):
            yield Fault(
                "R61", site.path, "a compaction block opens the messages: drop those before"
            )
        elif len(request.messages[0].blocks) == 1 and _role(request, 1) == "system":
            what = "a system message can't come first after a compaction block: move it"
            yield Fault("R61", "messages.1.role", what)
        if request.terms.betas is not None and ON_DEMAND_BETA not in request.terms.betas:
            yield Fault("R61", site.path, f"only with the beta {ON_DEMAND_BETA}: send it")


def _on_demand(sites: list[Site]) -> list[Site]:
    """Blocks made on demand; those that a threshold made bear no signature."""
    return [site for site in sites if site.block.get("signature") is not None]


def _role(request: Request, number: int) -> str:
    return request.messages[number].role if number < len(request.messages) else ""


def check_compaction_request(request: Request) -> Iterator[Fault]:
    """A request for compaction: something to summarise, nothing open, and nothing else asked."""
    wanted = object_of(request.param("compaction"))
    if not wanted:
        return
    last, betas = request.last("assistant"), request.terms.betas
    if last < 0:
        yield Fault("R62", "compaction", "there is no reply to summarise yet: leave it out")
    elif last == len(request.messages) - 1 and _has_call(request, last):
        what = "the last reply waits for a result: answer it first"
        yield Fault("R62", f"messages.{last}", what)
    for path in _incompatible(request):
        yield Fault("R62", path, "not together with `compaction`: leave it out")
    most = request.terms.traits.max_instructions_chars
    if len(text_of(wanted.get("instructions"))) > most:
        yield Fault("R62", "compaction.instructions", f"at most {most} characters: shorten them")
    if betas is not None and ON_DEMAND_BETA not in betas:
        yield Fault("R62", "compaction", f"only with the beta {ON_DEMAND_BETA}: send it")


def _has_call(request: Request, number: int) -> bool:
    return any(site.block["type"] == "tool_use" for site in request.messages[number].blocks)


def _incompatible(request: Request) -> Iterator[str]:
    config = object_of(request.param("output_config"))
    present = {
        "context_management": request.param("context_management"),
        "stop_sequences": request.param("stop_sequences"),
        "output_format": request.param("output_format"),
        "output_config.format": config.get("format"),
        "output_config.task_budget.remaining": object_of(config.get("task_budget")).get(
            "remaining"
        ),
    }
    yield from (path for path, value in present.items() if value is not None)
    if object_of(request.param("tool_choice")).get("type") in ("any", "tool"):
        yield "tool_choice"
