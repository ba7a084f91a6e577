"""The prompt cache: where breakpoints stand, and whether clearing pays back what it rewrites.

The API caches a prefix (tools, system, messages) at breakpoints alone, looks back from
each over a number of blocks for an entry written before, and rewrites everything from
the first changed block on. Rules and multipliers are its documentation's, as of October
2026; those of a model come in as `CacheTerms`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from math import ceil
from typing import Any, Literal

from mcp_context_server.core.messages import Block, Message, Value, is_thinking
from mcp_context_server.core.models import CacheTerms, Model
from mcp_context_server.core.policy import Policy

Ttl = Literal["5m", "1h"]

# ── system prompt ────────────────────────────────────────────────────────────


def split_system(system: str, marker: str, ttl: Ttl = "5m") -> tuple[Block, ...]:
    """A system prompt as blocks: what stands before the marker cached, what follows it not.

    Without the marker the prompt is one cached block. The first marker counts and is
    left out; a part that is blank gives no block, since the API refuses one.
    """
    static, _, dynamic = system.partition(marker) if marker else (system, "", "")
    parts = ((static, True), (dynamic, False))
    blocks = ((_text(text), cached) for text, cached in parts if text.strip())
    return tuple(_marked(block, ttl) if cached else block for block, cached in blocks)


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


# ── breakpoints ──────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """A block after which the API is asked to cache."""

    message: int
    at: int
    """The block's index in the message's content; a string is block 0."""
    ttl: Ttl

    @property
    def path(self) -> str:
        return f"messages.{self.message}.content.{self.at}"


Place = tuple[int, int]
"""A message's index, and a block's in its content."""


def place_breakpoints(
    messages: Sequence[Message],
    policy: Policy,
    *,
    tools: Sequence[Mapping[str, Any]] = (),
    system: str | Sequence[Mapping[str, Any]] = (),
    first_edited: Place | None = None,
) -> tuple[Breakpoint, ...]:
    """Where breakpoints belong in a conversation, in its order.

    One goes on the last block of each of the latest user messages: this turn's is
    written, the one before is where the turn before wrote. After an edit one more goes
    just before the first edited block, so that what precedes the edit is still read.
    Marks on tools and system count towards the most a request may have; where one of
    them is short, these are too, since a long one may not follow it.
    """
    marks = list(_marks((*tools, *(() if isinstance(system, str) else system))))
    room = max(0, policy.cache_breakpoints - len(marks))
    ttl: Ttl = "5m" if any(mark.get("ttl", "5m") == "5m" for mark in marks) else policy.cache_ttl
    edited = _last_before(messages, first_edited) if first_edited else None
    latest = list(_ends_of_user_messages(messages, policy.cache_user_messages))
    wanted = dict.fromkeys(place for place in (*latest[:1], edited, *latest[1:]) if place)
    return tuple(Breakpoint(*place, ttl) for place in sorted(list(wanted)[:room]))


def first_difference(before: Sequence[Message], after: Sequence[Message]) -> Place | None:
    """The first block that was sent before and now differs; None where only new ones follow."""
    for number, (old, new) in enumerate(zip_longest(before, after)):
        if old is None or old is new:
            continue
        blocks = new.blocks if new and new.role == old.role else ()
        for at, block in enumerate(old.blocks):
            if at >= len(blocks) or not _is_same(blocks[at], block):
                return number, at
    return None


def _is_same(new: Block, old: Block) -> bool:
    try:
        return new is old or new == old
    except RecursionError:
        return False  # nested too deep to compare: taken for changed


def _marks(blocks: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for block in blocks:
        if isinstance(mark := block.get("cache_control"), Mapping):
            yield mark


def _ends_of_user_messages(messages: Sequence[Message], most: int) -> Iterator[Place]:
    """The last blocks that can be marked of the latest user messages, newest first."""
    users = (n for n in range(len(messages) - 1, -1, -1) if messages[n].role == "user")
    ends = ((number, _last_markable(messages[number].blocks)) for number in users)
    return islice(((number, at) for number, at in ends if at >= 0), most)


def _last_before(messages: Sequence[Message], place: Place) -> Place | None:
    """The last block before a place that can carry a mark."""
    number, end = place
    within = messages[number].blocks[:end] if number < len(messages) else ()
    before = ((n, messages[n].blocks) for n in range(min(number, len(messages)) - 1, -1, -1))
    ends = ((n, _last_markable(blocks)) for n, blocks in chain([(number, within)], before))
    return next(((n, at) for n, at in ends if at >= 0), None)


def _last_markable(blocks: Sequence[Block]) -> int:
    """The index of the last block that can carry a mark, or -1."""
    backwards = range(len(blocks) - 1, -1, -1)
    return next((at for at in backwards if _can_be_marked(blocks[at])), -1)


def _can_be_marked(block: Block) -> bool:
    text = block.get("text")
    blank = block.get("type") == "text" and not (isinstance(text, str) and text.strip())
    return not blank and not is_thinking(block)


def _marked(block: Block, ttl: Ttl) -> Block:
    mark = {"type": "ephemeral"} if ttl == "5m" else {"type": "ephemeral", "ttl": ttl}
    return {**block, "cache_control": mark}


# ── what clearing costs ──────────────────────────────────────────────────────


Verdict = Literal["clear", "keep"]
Reason = Literal["pays", "uncached", "forced", "too_dear", "nothing_to_gain"]


class ClearingCost(Value):
    """What clearing costs and saves, and the verdict; costs in tokens of uncached input."""

    verdict: Verdict
    reason: Reason
    sentence: str
    cache: Literal["warm", "cold", "none"]
    """Whether the prefix is cached: yes, no longer, or too short ever to be."""
    freed_tokens: int
    """Tokens that go, less the placeholders that come."""
    rewritten_tokens: int
    """Tokens written to the cache anew, because the edit or a missed entry precedes them."""
    requests_expected: int
    requests_to_pay_back: int | None
    """Requests after which clearing has cost no more than keeping; None for never."""
    keep_cost_tokens: float
    """What the prefix costs over the requests expected when nothing is cleared."""
    clear_cost_tokens: float
    """The same when it is."""


def clearing_cost(
    model: Model,
    policy: Policy,
    *,
    before_tokens: int,
    cleared_tokens: int,
    after_tokens: int,
    placeholder_tokens: int = 0,
    read_tokens: int | None = None,
    idle_seconds: float | None = None,
    ttl: Ttl = "5m",
    requests_expected: int | None = None,
    forced: bool = False,
) -> ClearingCost:
    """Whether to clear: its cost over the requests expected, against that of keeping.

    The prefix is `before_tokens`, then `cleared_tokens` that placeholders would replace,
    then `after_tokens`. Of what comes before, `read_tokens` are read from the cache after
    the edit: all of it, unless something else is said. The cache is warm until its time
    to live has passed since the last request. `forced` says that the window leaves no
    choice. A model with a dearer price for long prompts is costed with it.
    """
    kept = before_tokens + after_tokens
    now = _Prefix(model, kept + cleared_tokens, ttl)
    then = _Prefix(model, kept + placeholder_tokens, ttl)
    warm = now.is_cached and not _has_lapsed(model.cache, ttl, idle_seconds)
    hit = before_tokens if read_tokens is None else min(read_tokens, before_tokens)
    first = now.first(now.tokens if warm else 0), then.first(hit if warm else 0)
    requests = max(1, requests_expected or policy.cache_requests_expected)
    keep, clear = first[0] + (requests - 1) * now.later, first[1] + (requests - 1) * then.later
    facts: dict[str, Any] = {
        "cache": "warm" if warm else "cold" if now.is_cached else "none",
        "freed_tokens": cleared_tokens - placeholder_tokens,
        "rewritten_tokens": then.tokens - hit if warm and then.is_cached else 0,
        "requests_expected": requests,
        "requests_to_pay_back": _pay_back(first[1] - first[0], now.later - then.later),
        "keep_cost_tokens": keep,
        "clear_cost_tokens": clear,
    }
    verdict, reason = _verdict(facts, forced=forced)
    sentence = _SENTENCES[reason].format(back=_after(facts["requests_to_pay_back"]), **facts)
    return ClearingCost(verdict=verdict, reason=reason, sentence=sentence, **facts)


@dataclass(frozen=True, slots=True)
class _Prefix:
    """A prefix of so many tokens, and what requests with it cost."""

    model: Model
    tokens: int
    ttl: Ttl

    @property
    def is_cached(self) -> bool:
        return self.tokens >= self.model.cache.min_tokens

    def first(self, hit_tokens: int) -> float:
        """The next request: so many tokens are read from the cache, the rest written to it."""
        terms = self.model.cache
        if not self.is_cached:
            return self.tokens * self._price
        write = terms.write_5m if self.ttl == "5m" else terms.write_1h
        return (hit_tokens * terms.read + (self.tokens - hit_tokens) * write) * self._price

    @property
    def later(self) -> float:
        """Each request after it."""
        return self.tokens * (self.model.cache.read if self.is_cached else 1) * self._price

    @property
    def _price(self) -> float:
        """The price of input, as a multiple of the one for short prompts."""
        model = self.model
        is_long = model.long_prompt_tokens is not None and self.tokens > model.long_prompt_tokens
        if not (is_long and model.input_price and model.long_input_price):
            return 1.0
        return model.long_input_price / model.input_price


def _has_lapsed(terms: CacheTerms, ttl: Ttl, idle_seconds: float | None) -> bool:
    lifetime = terms.ttl_seconds if ttl == "5m" else terms.long_ttl_seconds
    return idle_seconds is not None and idle_seconds >= lifetime


def _pay_back(extra: float, saved: float) -> int | None:
    """Requests until what each later one saves has made up for the first one's extra cost."""
    if extra <= 0:
        return 1
    return 1 + ceil(extra / saved) if saved > 0 else None


def _verdict(facts: Mapping[str, Any], *, forced: bool) -> tuple[Verdict, Reason]:
    if facts["freed_tokens"] <= 0:
        return "keep", "nothing_to_gain"
    if forced:
        return "clear", "forced"
    if facts["clear_cost_tokens"] > facts["keep_cost_tokens"]:
        return "keep", "too_dear"
    return "clear", "pays" if facts["cache"] == "warm" else "uncached"


def _after(requests: int | None) -> str:
    return "never" if requests is None else f"after {requests:,} requests"


_SENTENCES: Mapping[Reason, str] = {
    "pays": "Clearing {freed_tokens:,} tokens rewrites {rewritten_tokens:,} in the cache and pays "
    "back {back}; {requests_expected:,} are expected.",
    "too_dear": "Clearing {freed_tokens:,} tokens would rewrite {rewritten_tokens:,} in the cache "
    "and pay back {back}; {requests_expected:,} are expected, so they stay.",
    "uncached": "Nothing of it is cached now, so clearing {freed_tokens:,} tokens saves from the "
    "next request on.",
    "forced": "The window leaves no choice: clearing {freed_tokens:,} tokens rewrites "
    "{rewritten_tokens:,} in the cache and pays back {back}.",
    "nothing_to_gain": "The placeholders are as long as what they would replace, so nothing goes.",
}
"""Why, by reason."""
