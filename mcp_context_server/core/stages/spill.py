"""Spill: oversized results leave the view; a preview and a reference stay in their place.

What has just come in is spilled whatever the window, since nothing of it was sent or
cached yet. What stands further back is only touched when the window forces it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from mcp_context_server.core.edits import Change, Edit, Entry, Replace
from mcp_context_server.core.ledger import ToolResult
from mcp_context_server.core.messages import Block, Message, Messages, nested_blocks, result_text
from mcp_context_server.core.policy import Policy
from mcp_context_server.core.session import Session, fold
from mcp_context_server.core.stages.clearing import cleared_ids, exchange, spilled_ids, unseen_from
from mcp_context_server.core.stages.thinking import with_thinking
from mcp_context_server.core.stages.turn import Moment, Step, Turn, turn_of
from mcp_context_server.core.tokens.estimates import block_tokens, tally_text
from mcp_context_server.core.tool_roles import tool_role


def spill(turn: Turn) -> Step | None:
    """The stage: previews for oversized results, of the newest messages or, pressed, of all."""
    start = 0 if turn.is_pressed else unseen_from(turn.view)
    edit = spill_from(turn, start)
    return None if edit is None else Step((edit,))


def spill_from(turn: Turn, start: int) -> Replace | None:
    """Previews for the oversized results in the view from message `start` on."""
    if not turn.policy.spill:
        return None
    large = _large_groups(turn, start)
    if not large:
        return None
    settled = spilled_ids(turn.session) | cleared_ids(turn.session)
    changes = [c for group in large for c in _spilled(turn, group, settled)]
    return Replace(at=turn.at, stage="spill", changes=tuple(changes)) if changes else None


def spill_appended(session: Session, entries: Sequence[Entry], moment: Moment) -> tuple[Edit, ...]:
    """The edits to append behind these entries, for what is oversized in them; most often none."""
    if all(isinstance(entry, Message) and not entry.results for entry in entries):
        return ()
    after = fold(session, enumerate(entries, session.version + 1), version=session.version)
    turn = turn_of(after, moment)
    edit = spill_from(turn, _first_new(session.view, after.view))
    return () if edit is None else with_thinking(turn, (edit,))


def _first_new(before: Messages, after: Messages) -> int:
    """The index of the first message that a view did not have before."""
    start = min(len(before), len(after))
    while start > 0 and after[start - 1] is not before[start - 1]:
        start -= 1
    return start


class _Limited(NamedTuple):
    result: ToolResult
    limit: float


def _large_groups(turn: Turn, start: int) -> list[tuple[ToolResult, ...]]:
    """The results of each message that may hold too much."""
    least, ledger = min(_limits(turn)) / turn.session.calibration.factor, turn.ledger
    large = (place for place, tokens in enumerate(ledger.tokens[start:], start) if tokens > least)
    return [ledger.results[place] for place in large if ledger.results[place]]


def _limits(turn: Turn) -> list[int]:
    policy = turn.policy
    own = [*policy.spill_tool_tokens.values(), policy.file_read_tokens or policy.spill_tokens]
    return [*own, _general_limit(turn), _group_limit(turn), policy.spill_base64_tokens]


def _general_limit(turn: Turn) -> int:
    policy = turn.policy
    return min(policy.spill_tokens, turn.share(policy.spill_window_fraction))


def _group_limit(turn: Turn) -> int:
    policy = turn.policy
    return min(policy.spill_group_tokens, turn.share(policy.spill_group_window_fraction))


def limit_of(turn: Turn, tool: str, arguments: Mapping[str, object] | None = None) -> int:
    """The largest result of a tool that stays, in tokens."""
    policy = turn.policy
    for name in (tool, _plain(tool)):
        if name in policy.spill_tool_tokens:
            return policy.spill_tool_tokens[name]
    role = tool_role(tool, arguments, own=policy.compactable_tools)
    if role == "read" and policy.file_read_tokens is not None:
        return policy.file_read_tokens
    return _general_limit(turn)


def is_exempt(policy: Policy, tool: str) -> bool:
    """Whether a tool's results are never spilled: those of this server's own `recall`."""
    return tool in policy.spill_exempt_tools or _plain(tool) in policy.spill_exempt_tools


def _plain(tool: str) -> str:
    """A tool's name without its server's."""
    return tool.rsplit("__", 1)[-1]


def _spilled(turn: Turn, group: Sequence[ToolResult], settled: frozenset[str]) -> list[Change]:
    """Previews for results above their own limit, then for the largest until the rest fits."""
    factor = turn.session.calibration.factor
    sized = [
        _Limited(result, limit_of(turn, result.tool, result.arguments))
        for result in group
        if result.id not in settled and not is_exempt(turn.policy, result.tool)
    ]
    room = max([_group_limit(turn), *(each.limit for each in sized)])
    most = turn.scaled(turn.policy.spill_preview_tokens)
    preview = min(most, room // max(1, 2 * len(sized)))
    total = factor * sum(each.result.tokens for each in sized)
    changes: list[Change] = []
    for each in sorted(sized, key=lambda each: -each.result.tokens):
        if total <= room and not _is_over(turn, each):
            continue
        if change := _preview(turn, each, min(preview, each.limit)):
            changes.append(change)
            total -= change.tokens_freed
    return changes


def _is_over(turn: Turn, each: _Limited) -> bool:
    tokens = turn.session.calibration.factor * each.result.tokens
    if tokens > each.limit:
        return True
    return tokens > turn.policy.spill_base64_tokens and looks_like_base64(
        result_text(each.result.block)
    )


def _preview(turn: Turn, each: _Limited, tokens: float) -> Change | None:
    """The change that leaves a preview of about `tokens`, in the form the content had."""
    result, block = each.result, each.result.block
    told = round(turn.session.calibration.factor * each.result.tokens)
    text = result_text(block)
    kept, dropped = _other_blocks(nested_blocks(block), turn, tokens)
    shown = preview_of(
        text,
        told,
        result.id,
        chars=_chars(text, tokens, turn),
        head_fraction=turn.policy.spill_head_fraction,
        dropped=dropped,
    )
    if isinstance(block.get("content"), str):
        return exchange(result, shown, turn.session)
    content: list[Block] = [{"type": "text", "text": shown}, *kept]
    return exchange(result, content, turn.session)


def _other_blocks(blocks: Iterable[Block], turn: Turn, tokens: float) -> tuple[list[Block], int]:
    """What is not text, as far as it fits beside the preview, and how many blocks do not."""
    kept, dropped, room = list[Block](), 0, tokens
    for block in blocks:
        if block.get("type") == "text":
            continue
        takes = turn.session.calibration.factor * block_tokens(block, "user", turn.session.family)
        if takes <= room:
            kept.append(block)
            room -= takes
        else:
            dropped += 1
    return kept, dropped


def _chars(text: str, tokens: float, turn: Turn) -> int:
    """How many characters of a text come to about `tokens`."""
    sample = text[:_SAMPLE_CHARS]
    each = turn.session.calibration.factor * tally_text(sample, turn.session.family, "result").total
    return int(tokens * len(sample) / each) if each > 0 else 0


_SAMPLE_CHARS = 100_000


def preview_of(
    text: str,
    tokens: int,
    reference: str,
    *,
    chars: int,
    head_fraction: float,
    dropped: int = 0,
) -> str:
    """A notice, the head and the tail of a text, about `chars` long without the notice.

    The notice comes first, so that no reader takes the preview for the whole.
    """
    if looks_like_base64(text):
        chars = min(chars, _BASE64_SHOWN_CHARS)
        head_fraction = 1.0
    head = _cut_head(text, int(chars * head_fraction))
    tail = _cut_tail(text[len(head) :], chars - int(chars * head_fraction))
    omitted = len(text) - len(head) - len(tail)
    kind = "base64 data" if looks_like_base64(text) else "result"
    more = f", {dropped} other blocks" if dropped else ""
    notice = (
        f"[Large {kind} stored: {tokens:,} tokens, {len(text):,} characters; "
        f"shown: first {len(head):,}, last {len(tail):,}; left out: {omitted:,}{more}. "
        f'All of it: recall with reference "{reference}"]'
    )
    if not omitted:
        return f"{notice}\n{head}{tail}" if text else notice
    gap = f"[… {omitted:,} characters left out …]"
    return "\n".join(part for part in (notice, head.rstrip("\n"), gap, tail.lstrip("\n")) if part)


def _cut_head(text: str, chars: int) -> str:
    """The beginning, up to the end of a line where one is near."""
    if len(text) <= chars:
        return text
    line = text.rfind("\n", chars - chars // 4, chars)
    return text[: line + 1] if line > 0 else text[:chars]


def _cut_tail(text: str, chars: int) -> str:
    """The end, from the beginning of a line where one is near."""
    if len(text) <= chars:
        return text
    start = len(text) - chars
    line = text.find("\n", start, start + chars // 4)
    return text[line + 1 :] if line > 0 else text[start:]


_BASE64_SHOWN_CHARS = 60
_BASE64 = re.compile(r"[A-Za-z0-9+/_=\r\n-]+")
_BASE64_PREFIX = re.compile(r"\s*(?:data:[^,]{0,200};base64,)?")
_PROBE_CHARS = 1_024
_LEAST_KINDS = 30
"""Different characters in a stretch of base64; words run together have fewer."""


def looks_like_base64(text: str) -> bool:
    """Whether a text is one long run of base64, judged by its beginning, middle and end."""
    if len(text) < _PROBE_CHARS:
        return False
    start = _BASE64_PREFIX.match(text)
    body = text[start.end() if start else 0 :]
    middle = len(body) // 2
    probes = (body[:_PROBE_CHARS], body[middle : middle + _PROBE_CHARS], body[-_PROBE_CHARS:])
    return all(
        _BASE64.fullmatch(probe.strip()) and len(set(probe)) >= _LEAST_KINDS for probe in probes
    )
