"""Rules about thinking: where it stands, what may change about it, and its parameters."""

from collections.abc import Iterator, Sequence
from itertools import takewhile

from mcp_context_server.core.messages import is_thinking
from mcp_context_server.core.rules.originals import (
    Originals,
    Prefix,
    digest,
    sealed_parts,
)
from mcp_context_server.core.rules.request import Fault, Request, Site, object_of

BINDING_BETA = "thinking-binding-controls-2026-08-01"
INTERLEAVED_BETA = "interleaved-thinking-2025-05-14"


def check_thinking_place(request: Request) -> Iterator[Fault]:
    """Thinking is an assistant's, and something follows it."""
    thoughts = request.of_kind("thinking", "redacted_thinking")
    for site in thoughts:
        if site.role != "assistant":
            yield Fault("R28", site.path, "only an assistant message may hold thinking: remove it")
    for number in sorted({site.message for site in thoughts if site.role == "assistant"}):
        said = reversed(request.messages[number].blocks)
        last = takewhile(lambda site: is_thinking(site.block), said)
        what = "a message can't end with thinking: remove it"
        yield from (Fault("R28", site.path, what) for site in last)


def check_thinking_of_the_turn(request: Request) -> Iterator[Fault]:
    """With manual thinking the running turn starts with it; without, the last reply has none."""
    mode, last = object_of(request.param("thinking")).get("type"), len(request.messages) - 1
    if last < 0:
        return
    if mode == "disabled" and request.messages[last].role == "assistant":
        what = "thinking is disabled, and the last reply holds some: remove it"
        thoughts = (site for site in request.messages[last].blocks if is_thinking(site.block))
        yield from (Fault("R27", site.path, what) for site in thoughts)
    if mode == "enabled" and _is_unthinking(request):
        said = request.messages[request.last("assistant")].blocks
        what = "with thinking enabled the running turn starts with thinking: disable it for now"
        yield Fault("R26", said[0].path if said else "messages", what)


def _is_unthinking(request: Request) -> bool:
    """Whether results come last, and no response of their turn starts with thinking."""
    if not request.messages or not request.messages[-1].answers:
        return False
    for message in reversed(request.messages):
        if message.role == "assistant" and message.blocks and is_thinking(message.blocks[0].block):
            return False
        if message.role == "user" and not message.answers:
            break
    return True


def check_thinking_is_unaltered(request: Request) -> Iterator[Fault]:
    """Thinking comes back as it was received, whole, and after what it was thought about."""
    if (originals := request.terms.originals) is None:
        return
    latest = request.last("assistant")
    for site in request.of_kind("thinking", "redacted_thinking"):
        if digest(site.block) not in originals.thoughts:
            rule = "R25" if site.message == latest else "R29"
            what = "this thinking is not as it was received: send it unaltered, or remove it"
            yield Fault(rule, site.path, what)
    if latest >= 0:
        yield from _check_whole(request.messages[latest].blocks, originals)
    for message in request.messages:
        yield from _check_fallbacks(message.blocks, originals)
    if request.terms.traits.binds_thinking and not _drops_mismatches(request):
        yield from _check_bonds(request, originals)


def _check_whole(said: Sequence[Site], originals: Originals) -> Iterator[Fault]:
    present = {digest(site.block): site for site in said if is_thinking(site.block)}
    for mark, site in present.items():
        thoughts = originals.thoughts.get(mark, ())
        whole = (present.keys() >= set(originals.thoughts_of[t.message]) for t in thoughts)
        if thoughts and not any(whole):
            what = "some thinking of the last reply is missing: send all of it, or none"
            yield Fault("R25", site.path, what)


def _check_fallbacks(said: Sequence[Site], originals: Originals) -> Iterator[Fault]:
    """A fallback block stays between the thinking it stood between."""
    last, seen = dict[int, int](), False
    for site in said:
        seen = seen or site.block["type"] == "fallback"
        if not is_thinking(site.block):
            continue
        runs = {t.message: t.run for t in originals.thoughts.get(digest(site.block), ())}
        if any((run > last[number]) != seen for number, run in runs.items() if number in last):
            what = "a fallback block before this thinking was moved or removed: put it back"
            yield Fault("R44", site.path, what)
        last, seen = runs, False


def _drops_mismatches(request: Request) -> bool:
    """Whether the API is asked to drop the thinking that no longer fits."""
    binding = object_of(object_of(request.param("thinking")).get("block_binding"))
    return binding.get("prefix_mismatch_behavior") == "drop_block"


def _check_bonds(request: Request, originals: Originals) -> Iterator[Fault]:
    prefix, before = Prefix(), ""
    for message in request.messages[: _last_thinking(request) + 1]:
        for site in message.blocks:
            mark = digest(site.block) if is_thinking(site.block) else ""
            if mark in originals.thoughts:
                now = prefix.digest()
                fitting = [t for t in originals.thoughts[mark] if t.prefix == now]
                if not fitting:
                    what = "the conversation before this thinking was changed: remove the thinking"
                    yield Fault("R30", site.path, what)
                elif before and all(thought.previous != before for thought in fitting):
                    what = "thinking between the one before and this was removed: remove this too"
                    yield Fault("R31", site.path, what)
                before = mark
            prefix.add(site.role, site.block)


def _last_thinking(request: Request) -> int:
    return max(
        (site.message for site in request.of_kind("thinking", "redacted_thinking")), default=-1
    )


def check_sealed_parts(request: Request) -> Iterator[Fault]:
    """Encrypted parts and compaction blocks come back as they were received."""
    if (originals := request.terms.originals) is None:
        return
    for message in request.messages:
        for site in message.blocks:
            if not originals.sealed.issuperset(sealed_parts(site.block)):
                rule = "R61" if site.block["type"] == "compaction" else "R42"
                what = "what the API sealed in this block was changed: send it as it was received"
                yield Fault(rule, site.path, what)


def check_thinking_parameters(request: Request) -> Iterator[Fault]:
    """What `thinking` asks for is something that the model and the other parameters allow."""
    thinking, betas = object_of(request.param("thinking")), request.terms.betas
    if not thinking:
        return
    mode, types = thinking.get("type"), request.terms.traits.thinking_types
    if mode not in types:
        allowed = ", ".join(types) or "none at all"
        yield Fault("R34", "thinking.type", f"this model takes {allowed}")
    binds = thinking.get("block_binding") is not None
    if binds and betas is not None and BINDING_BETA not in betas:
        what = f"only with the beta {BINDING_BETA}: send it or leave this out"
        yield Fault("R32", "thinking.block_binding", what)
    if mode == "enabled":
        yield from _check_manual_thinking(request)


def _check_manual_thinking(request: Request) -> Iterator[Fault]:
    budget = object_of(request.param("thinking")).get("budget_tokens")
    most, least = request.param("max_tokens"), request.terms.traits.min_thinking_budget_tokens
    if not isinstance(budget, int) or budget < least:
        yield Fault("R35", "thinking.budget_tokens", f"must be at least {least}")
    elif isinstance(most, int) and most <= budget and not _is_interleaved(request):
        yield Fault("R35", "max_tokens", f"must be greater than the thinking budget, {budget}")
    if object_of(request.param("tool_choice")).get("type") in ("any", "tool"):
        what = "a tool can't be forced with thinking enabled: use `auto` or `none`"
        yield Fault("R36", "tool_choice.type", what)


def _is_interleaved(request: Request) -> bool:
    return request.terms.betas is not None and INTERLEAVED_BETA in request.terms.betas
