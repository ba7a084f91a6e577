"""A summary that someone else wrote: read from the answer, judged, checked against the messages.

`read_summary` takes an answer apart and says why it can't be used; `completed`
tells what a usable one lost, and adds it as an index.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from mcp_context_server.core.markers import neutralise
from mcp_context_server.core.messages import Message
from mcp_context_server.core.policy import Policy
from mcp_context_server.core.redact import redact
from mcp_context_server.core.summary.digest import Digest, digest
from mcp_context_server.core.summary.identifiers import names_in
from mcp_context_server.core.summary.index import References, index_lines
from mcp_context_server.core.summary.outline import sections_of
from mcp_context_server.core.summary.wording import Wording, english, wording_for
from mcp_context_server.core.summary.working_set import weighed_set
from mcp_context_server.core.text import Count, one_line, quoted, shortened, third_of_chars

Fault = Literal["empty", "too_short", "refused", "tool_call", "truncated", "not_smaller"]


@dataclass(frozen=True, slots=True)
class Rejected:
    """Why an answer can't stand for the messages; history stays as it was."""

    fault: Fault
    reason: str
    """For whoever asked: what is wrong with the answer."""


REASONS: dict[Fault, str] = {
    "empty": "The answer holds no summary: nothing is left without its analysis.",
    "too_short": "The answer is too short to stand for a conversation.",
    "refused": "The answer declines to summarize, or says that there is nothing to summarize.",
    "tool_call": "The answer calls a tool instead of summarizing.",
    "truncated": "The answer was cut off before the end of the summary.",
    "not_smaller": "The summary is not smaller than what it would replace.",
}


def read_summary(
    answer: str,
    *,
    replaced_tokens: int | None = None,
    count: Count = third_of_chars,
    stop_reason: str | None = None,
    policy: Policy | None = None,
) -> str | Rejected:
    """The summary in an answer, or why there is none that can be used.

    `stop_reason` is the API's, in Anthropic's or OpenAI's words.
    """
    found = summary_text(answer)
    fault = _fault(found, answer, stop_reason, policy or Policy())
    if fault is None and replaced_tokens is not None and count(found.text) >= replaced_tokens:
        fault = "not_smaller"
    return found.text if fault is None else Rejected(fault, REASONS[fault])


def _fault(
    found: "SummaryText", answer: str, stop_reason: str | None, policy: Policy
) -> Fault | None:
    has_sections = len(sections_of(found.text)) >= _ENOUGH_SECTIONS
    if stop_reason in ("tool_use", "tool_calls", "function_call"):
        return "tool_call"
    if stop_reason in ("refusal", "content_filter", "safety"):
        return "refused"
    if not has_sections and _TOOL_CALL.search(_without_code(answer)):
        return "tool_call"
    if not found.text:
        return "empty"
    if stop_reason in ("max_tokens", "length", "model_context_window_exceeded"):
        return "truncated"
    if not found.is_closed:
        return "truncated"
    if not has_sections and _REFUSAL.match(found.text) and len(found.text) < _LONGEST_REFUSAL_CHARS:
        return "refused"
    return "too_short" if len(found.text) < policy.smallest_summary_chars else None


_ENOUGH_SECTIONS = 3
_LONGEST_REFUSAL_CHARS = 600
_TOOL_CALL = re.compile(
    r"<\|?/?(?:tool_calls?|tool_use|function_calls?|antml:(?:invoke|function_calls)|invoke\s+name=)"
    r"|\[TOOL_CALLS\]|<\|(?:python_tag|tool▁calls?▁begin|tool_call_begin)\|>"
    r"|^\s*\{\s{0,20}\"(?:type\"\s{0,4}:\s{0,4}\"(?:tool_use|function)\"|tool_calls?\"|name\"\s{0,4}:\s{0,4}"
    r"\"[^\"\n]{1,80}\",\s{0,20}\"(?:arguments|parameters|input)\")",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"\W{0,4}(?:i'?m (?:sorry|unable|not able)|sorry,|i (?:can(?:'|no)t|won't|am (?:unable|sorry))"
    r"|(?:there (?:is|are|was) )?no (?:prior |previous |earlier )?"
    r"(?:conversation|history|messages?|context)|as an ai|unfortunately"
    r"|es tut mir leid|ich kann (?:das |dies )?nicht|désolé|je ne peux pas|lo siento|no puedo"
    r"|desculpe|mi dispiace|извините|к сожалению|抱歉|很抱歉|对不起|申し訳|죄송)",
    re.IGNORECASE,
)
_CODE = re.compile(r"```[^`]*(?:```|$)|`[^`\n]*`")


def _without_code(text: str) -> str:
    return _CODE.sub("", text)


# ── taking the answer apart ──────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class SummaryText:
    text: str
    is_closed: bool
    """Whether an opened `<summary>` was closed, so that nothing shows a cut."""


_TAG = re.compile(r"(?<!`)<(/?)\s{0,4}(analysis|summary)(?:\s[^<>]{0,200})?>", re.IGNORECASE)
_BLANK_LINES = re.compile(r"\n[ \t]*(?:\n[ \t]*)+\n")


@dataclass(frozen=True, slots=True)
class _Tag:
    name: str
    is_closing: bool
    start: int
    end: int


def summary_text(answer: str) -> SummaryText:
    """The text of an answer's summary: analysis dropped, tags taken off, blank lines collapsed.

    An unclosed analysis reaches to the summary's opening tag, or to the end where none
    follows. A tag right after a backtick is text about the tag.
    """
    tags = [_Tag(m[2].lower(), bool(m[1]), m.start(), m.end()) for m in _TAG.finditer(answer)]
    for ends_at_summary in (False, True):
        pieces = list(_kept(answer, tags, ends_at_summary))
        found = _inside(pieces)
        if found.text:
            return found
    return SummaryText("", is_closed=True)


Piece = str | _Tag
"""Text outside of any analysis, or a tag of a summary."""


def _kept(answer: str, tags: Sequence[_Tag], ends_at_summary: bool) -> Iterator[Piece]:
    last_close = max((t.start for t in tags if t.name == "analysis" and t.is_closing), default=-1)
    at, depth = 0, 0
    for tag in tags:
        if depth == 0:
            yield answer[at : tag.start]
        at = tag.end
        if tag.name == "analysis":
            depth = 0 if tag.is_closing else 1
        elif depth and not tag.is_closing and (ends_at_summary or tag.start > last_close):
            depth = 0
            yield tag
        elif depth == 0:
            yield tag
    if depth == 0:
        yield answer[at:]


def _inside(pieces: Sequence[Piece]) -> SummaryText:
    """The text from the first opening tag of a summary to the last closing one."""
    opened = next((i for i, p in enumerate(pieces) if isinstance(p, _Tag) and not p.is_closing), -1)
    closed = max(
        (i for i, p in enumerate(pieces) if isinstance(p, _Tag) and p.is_closing), default=-1
    )
    end = closed if closed > opened else len(pieces)
    text = "".join(p for p in pieces[opened + 1 : end] if isinstance(p, str))
    text = _BLANK_LINES.sub("\n\n", text).strip()
    return SummaryText(text, is_closed=opened < 0 or closed > opened)


# ── what a summary lost ──────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Missing:
    """What of the conversation a summary does not carry over."""

    sections: tuple[str, ...]
    """Titles of the nine sections, in English."""
    requests: tuple[str, ...]
    """User messages, oldest first, on one line each."""
    identifiers: tuple[str, ...]
    """Names of the working set, weightiest first."""


@dataclass(frozen=True, slots=True)
class Completed:
    """A summary with what it lacked, as far as the budget allowed."""

    text: str
    missing: Missing
    """What it lacked before."""


def completed(
    summary: str,
    messages: Sequence[Message],
    *,
    count: Count = third_of_chars,
    references: References | None = None,
    policy: Policy | None = None,
) -> Completed:
    """A summary with a working-set index of what it lacks, and requests that it lost.

    The addition takes at most `index_fraction` of the summary's size and `index_tokens`.
    """
    policy = policy or Policy()
    story = digest(messages, policy.compactable_tools)
    words = wording_for([turn.request for turn in story.turns])
    size = count(summary)
    budget = min(policy.index_tokens, int(size * policy.index_fraction))
    lost = _missing_requests(summary, story)
    requests = _requests_block(lost, budget // 3, count, words)
    left = budget - count(f"\n\n## {words.working_set}\n\n{requests}")
    files, others = index_lines(
        weighed_set(messages, story, policy=policy),
        budget=left,
        count=count,
        references=references or (lambda id: None),
        words=words,
        known=names_in(summary) | names_in(requests),
    )
    lines = "\n".join((*([requests] if requests else ()), *files, *others))
    text = f"{summary}\n\n## {words.working_set}\n{redact(neutralise(lines))}" if lines else summary
    return Completed(
        text,
        Missing(
            _missing_sections(summary),
            tuple(one_line(request, 200) for request in lost),
            _missing_names(summary, messages, story, policy),
        ),
    )


def _requests_block(lost: Sequence[str], budget: int, count: Count, words: Wording) -> str:
    """The newest lost requests that fit, quoted, oldest first."""
    kept, left = list[str](), budget
    for request in reversed(lost):
        block = quoted(neutralise(shortened(request, max(20, budget // 2), count, words.left_out)))
        if (cost := count(block) + 1) > left:
            break
        left -= cost
        kept.append(block)
    return "\n".join((f"{words.requests_too}:", *reversed(kept))) if kept else ""


def _missing_sections(summary: str) -> tuple[str, ...]:
    found = sections_of(summary)
    return tuple(title for n, title in enumerate(english().sections, 1) if n not in found)


def _missing_names(
    summary: str, messages: Sequence[Message], story: Digest, policy: Policy
) -> tuple[str, ...]:
    known = names_in(summary)
    things = weighed_set(messages, story, policy=policy, limit=policy.working_set_checked)
    return tuple(
        item.name
        for item in things.items
        if item.kind != "argument" and item.name.strip("./-") not in known
    )


_WORDS = re.compile(r"[^\W_]{3,}|[぀-ヿ㐀-鿿가-힯]{2}")


def _missing_requests(summary: str, story: Digest) -> list[str]:
    """User messages of which less than half of the words stand in the summary."""
    carried = set(_WORDS.findall(summary.lower()))
    return [turn.request for turn in story.turns if not _is_carried(turn.request, carried)]


def _is_carried(request: str, carried: set[str]) -> bool:
    words = set(_WORDS.findall(request[:2_000].lower()))
    return not words or len(words & carried) * 2 >= len(words)
