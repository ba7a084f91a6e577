"""What a summarizing model is shown: the messages, made to fit where a call overflowed.

Each try drops whole oldest rounds, by the gap that the error names or by a share of
them; the last try keeps what the estimate says fits. A round that is too large by
itself is cut inside, the largest results first. What was left out is said.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, cast

from mcp_context_server.core.markers import neutralise
from mcp_context_server.core.messages import (
    Block,
    Message,
    Messages,
    is_call,
    is_result,
    is_thinking,
    nested_blocks,
    result_text,
    rounds,
)
from mcp_context_server.core.policy import Policy
from mcp_context_server.core.recovery.overflow import Overflow
from mcp_context_server.core.redact import redact
from mcp_context_server.core.stages.media import marker
from mcp_context_server.core.text import shortened
from mcp_context_server.core.tokens.estimates import tally_messages, tally_text
from mcp_context_server.core.tokens.images import is_media


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Messages for one try, and how many of the oldest are left out."""

    messages: Messages
    left_out: int = 0
    tries: int = 0
    """Tries before this one."""

    @property
    def marked(self) -> Messages:
        """The messages, with one before them that says what is missing where something is.

        It is made for each try anew and never becomes part of the next one.
        """
        if not self.left_out and (not self.messages or self.messages[0].role == "user"):
            return self.messages
        told = f"[The {self.left_out} oldest messages were left out: they did not fit here.]"
        opening = told if self.left_out else "[The conversation begins here.]"
        return (Message(role="user", content=opening, is_meta=True), *self.messages)


def shrunk(
    shown: Shown, overflow: Overflow, *, fits_tokens: int, family: str, policy: Policy
) -> Shown | None:
    """What to show after an overflow; None once there is nothing left to try.

    `fits_tokens` is what the estimate says the messages may take.
    """
    tries = shown.tries + 1
    if tries > policy.summary_retries:
        return None
    sizes = _sizes(shown.messages, family, policy)
    total = round(sum(sizes))
    fits = _believed(fits_tokens, overflow, total)
    if tries == policy.summary_retries:
        target = fits
    elif overflow.gap:
        target = max(1, round(total - overflow.gap / _counted(overflow, total)))
    else:
        return _without_rounds(shown, tries, fits, sizes, family, policy)
    return _down_to(shown, tries, target, sizes, family, policy)


def _sizes(messages: Messages, family: str, policy: Policy) -> list[float]:
    """What each message takes as it is shown, in which old results are shortened."""
    texts = (_as_text(each) for each in _flattened(messages, family, policy))
    return [tally_text(text, family).total for text in texts]


def _counted(overflow: Overflow, total: int) -> float:
    """How many tokens the provider counts for one of ours, where it counts fewer."""
    return min(1.0, overflow.used / total) if overflow.used and total else 1.0


def _believed(fits_tokens: int, overflow: Overflow, total: int) -> int:
    """What fits, corrected by what the provider counted where it says so."""
    if overflow.used and overflow.limit and total:
        real = overflow.used / total
        return max(1, int(min(fits_tokens, overflow.limit * _CAUTION / max(real, 1e-6))))
    return fits_tokens if fits_tokens < total else max(1, total // 2)


_CAUTION = 0.9


def _without_rounds(
    shown: Shown, tries: int, fits: int, sizes: list[float], family: str, policy: Policy
) -> Shown:
    """A share of the oldest rounds less; one round is left, and cut inside."""
    found = rounds(shown.messages)
    if len(found) <= 1:
        return _cut(shown, tries, fits, sizes, family, policy)
    gone = min(ceil(len(found) * policy.summary_drop_fraction), len(found) - 1)
    return _from(shown, found[gone].start, tries)


def _down_to(
    shown: Shown, tries: int, target: int, sizes: list[float], family: str, policy: Policy
) -> Shown:
    """Only the newest rounds that a target holds; the newest of all, cut where it is larger."""
    found = rounds(shown.messages)
    start, size = found[-1].start if found else 0, 0.0
    for each in reversed(found):
        size += sum(sizes[each.start : each.stop])
        if size > target:
            break
        start = each.start
    left = _from(shown, start, tries)
    if sum(sizes[start:]) > target:
        return _cut(left, tries, target, sizes[start:], family, policy)
    return left


def _from(shown: Shown, start: int, tries: int) -> Shown:
    return Shown(messages=shown.messages[start:], left_out=shown.left_out + start, tries=tries)


def _cut(
    shown: Shown, tries: int, target: int, sizes: list[float], family: str, policy: Policy
) -> Shown:
    """The messages with their largest results and texts shortened until a target holds them."""
    messages = list(shown.messages)
    excess = sum(sizes) - target
    by_size = sorted(range(len(messages)), key=lambda i: (not messages[i].results, -sizes[i]))
    for index in by_size:
        if excess <= 0:
            break
        wanted = max(min(sizes[index], _LEAST_TOKENS), sizes[index] - excess)
        whole = tally_messages((messages[index],), family).total
        messages[index] = _cut_message(
            messages[index], wanted / max(1.0, whole, sizes[index]), policy
        )
        excess -= sizes[index] - sum(_sizes((messages[index],), family, policy))
    return Shown(messages=tuple(messages), left_out=shown.left_out, tries=tries)


_LEAST_TOKENS = 100


def _cut_message(message: Message, share: float, policy: Policy) -> Message:
    return message.with_blocks(_cut_block(b, share * _CAUTION, policy) for b in message.blocks)


def _cut_block(block: Block, share: float, policy: Policy) -> Block:
    if is_result(block):
        text = result_text(block)
        return {**block, "content": _part(text, share, policy)} if text else block
    text = block.get("text")
    if not isinstance(text, str) or not text:
        return block
    return {**block, "text": _part(text, share, policy)}


def _part(text: str, share: float, policy: Policy) -> str:
    return masked_ends(text, max(1, int(len(text) * share)), policy)


# ── media and secrets ────────────────────────────────────────────────────────


def without_media(messages: Messages) -> Messages:
    """The messages with a marker for each image and document."""
    return tuple(_plain(message) for message in messages)


def _plain(message: Message) -> Message:
    blocks = [_without(block, message.id) for block in message.blocks]
    same = all(a is b for a, b in zip(blocks, message.blocks, strict=True))
    return message if same else message.with_blocks(blocks)


def _without(block: Block, message_id: str) -> Block:
    if is_media(block):
        return marker(block, message_id)
    inner = nested_blocks(block) if is_result(block) else ()
    if any(map(is_media, inner)):
        reference = block["tool_use_id"]
        return {
            **block,
            "content": [marker(b, reference) if is_media(b) else b for b in inner],
        }
    return block


# ── flattened ────────────────────────────────────────────────────────────────


def flattened(messages: Messages, *, family: str, policy: Policy) -> str:
    """The messages as one text: each with its role, calls and results written out.

    Old results are shown by their beginning and end, as micro-compaction would clear them.
    Nothing in it can pass for our own structure, and secrets are masked.
    """
    parts = (part for each in _flattened(messages, family, policy) for part in each)
    return redact(_as_text(parts), enabled=policy.mask_secrets)


def _flattened(messages: Messages, family: str, policy: Policy) -> Iterator[list[str]]:
    """The parts of each message, of which the newest results are shown longer."""
    newest = [id for message in messages for id in message.results][-max(1, policy.keep_recent) :]
    most = dict.fromkeys(newest, policy.summary_result_tokens)
    return (_parts(message, family, most, policy) for message in messages)


def _as_text(parts: Iterable[str]) -> str:
    return "\n\n".join(parts)


def _parts(message: Message, family: str, most: Mapping[str, int], policy: Policy) -> list[str]:
    found, least = list[str](), policy.summary_old_result_tokens
    for block in message.blocks:
        text = _written(block, family, most.get(str(block.get("tool_use_id")), least), policy)
        if text:
            found.append(f"[{_speaker(message, block)}]\n{neutralise(text)}")
    return found


def _speaker(message: Message, block: Block) -> str:
    if is_result(block):
        return "tool result"
    if is_call(block):
        return f"assistant calls {block.get('name', 'a tool')}"
    return "host" if message.is_meta else message.role


def _written(block: Block, family: str, most: int, policy: Policy) -> str:
    if is_thinking(block):
        return ""
    if is_result(block):
        text = result_text(block)
        chars = len(text)
        if chars > most and (size := tally_text(text, family, "result").total) > most:
            return masked_ends(text, int(chars * most / size), policy)
        return text
    if is_call(block):
        return _arguments(block.get("input"))
    text = block.get("text")
    return text if isinstance(text, str) else ""


def masked_ends(text: str, chars: int, policy: Policy) -> str:
    """A text's beginning and end, its secrets masked while they are whole and can be told."""
    text = redact(text, enabled=policy.mask_secrets)
    return shortened(text, chars, len, "characters left out")


def _arguments(given: object) -> str:
    if not isinstance(given, Mapping):
        return ""
    arguments = cast("Mapping[str, Any]", given)
    return "\n".join(f"{name}: {value}" for name, value in arguments.items())
