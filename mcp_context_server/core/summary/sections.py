"""The story sections of an extractive summary: what each has to say, as weighed entries.

A section offers more than will fit; whoever asks takes the weightiest entries.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mcp_context_server.core.summary.changes import added_lines
from mcp_context_server.core.summary.digest import Digest
from mcp_context_server.core.summary.earlier import Numbered
from mcp_context_server.core.summary.failures import Failure, error_line, failures
from mcp_context_server.core.summary.stated import Rule
from mcp_context_server.core.summary.steps import Step, subject
from mcp_context_server.core.summary.under_way import (
    Status,
    background,
    commit_subject,
    plan_of,
    todos,
)
from mcp_context_server.core.summary.wording import Wording
from mcp_context_server.core.text import Count, cut_before, one_line, plain, quoted, shortened


@dataclass(frozen=True, slots=True)
class Entry:
    """One paragraph or list item, and how much it is worth keeping."""

    text: str
    weight: float


@dataclass(frozen=True, slots=True)
class Asked:
    """The user's requests, each as far as its share of the room reaches, oldest first."""

    whole: tuple[str, ...]
    shown: tuple[str, ...]
    omitted: int
    """How many of the oldest, after the first, are left out for lack of room."""
    texts: tuple[str, ...] = ()
    """All of them, those left out as well."""


# ── 1 and 6: what the user asked for ─────────────────────────────────────────


def asked(requests: Sequence[str], *, room: int, count: Count, words: Wording) -> Asked:
    """Requests cut to share a room fairly: short ones whole, long ones to the same length.

    The first and the newest get three times the share of the others. Where there is no
    room for a line of each, the oldest after the first are left out.
    """
    most = max(2, room // _SHORTEST_REQUEST)
    omitted = max(0, len(requests) - most)
    kept = [*requests[:1], *requests[1 + omitted :]]
    sizes = [count(text) for text in kept]
    ends = {0, len(kept) - 1}
    parts = [3 if i in ends else 1 for i in range(len(kept))]
    share = _fair_share(sizes, parts, room)
    shown = tuple(
        shortened(text, max(_SHORTEST_REQUEST, int(share * part)), count, words.left_out)
        for text, part in zip(kept, parts, strict=True)
    )
    return Asked(tuple(kept), shown, omitted, tuple(requests))


_SHORTEST_REQUEST = 24


def _fair_share(sizes: Sequence[int], parts: Sequence[int], room: int) -> float:
    """The length per part at which all together, none longer than it is, fill the room."""
    order = sorted(range(len(sizes)), key=lambda i: sizes[i] / parts[i])
    left, shares = float(room), sum(parts)
    for i in order:
        if sizes[i] / parts[i] * shares > left:
            return left / shares
        left, shares = left - sizes[i], shares - parts[i]
    return float(room)


def intent(
    requests: Asked,
    words: Wording,
    focus: str,
    earlier: Sequence[str] = (),
    rules: Sequence[tuple[int, Rule]] = (),
) -> Iterator[Entry]:
    """What is wanted; `rules` are those that were stated, by the number of their request."""
    yield from (Entry(text, 800) for text in earlier)
    if focus:
        yield Entry(f"- {words.focus}: “{one_line(focus, 300)}”", 950)
    if len(requests.whole) > 1:
        yield Entry(f"{words.first_request}:\n{quoted(requests.shown[0])}", 1000)
    for number, rule in rules:
        line = f"- {words.rule} ({number}): “{rule.text}”"
        if line not in earlier:
            yield Entry(line, rule.weight + number / 1000)
    if requests.whole:
        yield Entry(words.newest_below, 900)


def rules_between(requests: Numbered) -> list[tuple[int, Rule]]:
    """The rules stated in requests that are not quoted whole: not in the first, nor the newest."""
    between = enumerate(requests.rules[1:-1], 2)
    return [(number, rule) for number, rules in between for rule in rules]


def user_messages(requests: Asked, words: Wording) -> Iterator[Entry]:
    seen = dict[str, int]()
    last = len(requests.whole) + requests.omitted
    if requests.omitted:
        yield Entry(f"({requests.omitted} {words.more_requests})", 1400)
    for at, (whole, shown) in enumerate(zip(requests.whole, requests.shown, strict=True)):
        number = at + 1 + (requests.omitted if at else 0)
        if number == last:
            yield Entry(f"{number}.\n{quoted(shown)}", 2000)
        elif at == 0:
            yield Entry(f"1. ({words.above})", 1500)
        elif whole in seen:
            yield Entry(f"{number}. ({words.same_as} {seen[whole]})", number)
        else:
            yield Entry(f"{number}.\n{quoted(shown)}", number)
        seen.setdefault(whole, number)


# ── 2: concepts ──────────────────────────────────────────────────────────────

_TERM = re.compile(r"\*\*([^*\n`]{3,40})\*\*")
_MOST_LISTED = 8


def concepts(story: Digest, words: Wording, earlier: Sequence[str] = ()) -> Iterator[Entry]:
    known = tuple(
        f"- {title}:"
        for title in (words.file_kinds, words.programs, words.tools_called, words.terms)
    )
    yield from (Entry(text, 0.5) for text in earlier if not text.startswith(known))
    kinds = Counter(_extension(path) for path in story.files)
    if listed := ", ".join(f"{kind} ({n})" for kind, n in kinds.most_common(6) if kind):
        yield Entry(f"- {words.file_kinds}: {listed}", 3)
    programs = Counter(subject(s.action) for s in story.steps if s.action.role == "shell")
    if listed := ", ".join(
        f"`{one_line(k, 40)}` {n}×" for k, n in programs.most_common(_MOST_LISTED) if k
    ):
        yield Entry(f"- {words.programs}: {listed}", 2)
    tools = Counter(step.action.tool for step in story.steps)
    if listed := ", ".join(f"{one_line(k, 40)} {n}×" for k, n in tools.most_common(12) if k):
        yield Entry(f"- {words.tools_called}: {listed}", 1.5)
    terms = Counter(
        term.strip(" :.")
        for said in story.said[-60:]
        for term in set(_TERM.findall(said.text[:8000]))
    )
    frequent = [term for term, n in terms.most_common(_MOST_LISTED) if n > 1 and len(term) > 3]
    if frequent:
        yield Entry(f"- {words.terms}: {', '.join(frequent)}", 1)


def _extension(path: str) -> str:
    name = path.replace("\\", "/").rpartition("/")[2]
    return f".{name.rpartition('.')[2]}" if "." in name[1:] else ""


# ── 4 and 5: what went wrong, and what was achieved ──────────────────────────


def errors(story: Digest, words: Wording, earlier: Sequence[str] = ()) -> Iterator[Entry]:
    yield from _before(earlier)
    for failure in failures(story.steps):
        if failure.error:
            open_bonus = 0 if failure.is_fixed else story.size / 4
            yield Entry(_failure(failure, words), failure.step.index + open_bonus)


def _failure(failure: Failure, words: Wording) -> str:
    action = failure.step.action
    error = one_line(failure.error, 160)
    about = f" `{one_line(action.gist, 80)}`" if action.gist else ""
    line = f"- {action.tool}{about} {words.failed}: `{error}`"
    if failure.fix:
        line += f" → “{plain(failure.fix, 150)}”"
    if failure.changed:
        names = ", ".join(f"`{path.rpartition('/')[2]}`" for path in failure.changed[:4])
        line += f" ({words.changed} {names})"
    return f"{line}; {words.fixed if failure.is_fixed else words.not_fixed}"


def solved(
    story: Digest, words: Wording, numbers: Sequence[int], earlier: Sequence[str] = ()
) -> Iterator[Entry]:
    """Each finished turn with what it came to, answers given to questions, and commits made."""
    yield from _before(earlier)
    turns = zip(numbers, story.turns, strict=True)
    for number, turn in list(turns)[-_MOST_TURNS:]:
        is_last = turn is story.turns[-1]
        if turn.answer and not (is_last and turn.is_open):
            title = plain(turn.request, 60)
            yield Entry(
                f"- {number} “{title}” {words.answered}: “{plain(turn.answer, 280)}”", turn.index
            )
    for step in story.steps:
        if step.action.role == "ask" and step.outcome and not step.has_failed:
            reply = one_line(step.outcome.text, 200)
            yield Entry(
                f"- {words.answer_of} “{one_line(step.action.gist, 80)}”: “{reply}”", step.index
            )
        if not step.has_failed and (made := commit_subject(step)):
            yield Entry(f"- `git commit`: “{one_line(made, 100)}”", step.index + 0.5)


_MOST_TURNS = 60


def _before(earlier: Sequence[str]) -> Iterator[Entry]:
    """Entries of an earlier summary: worth less than any of this one, the last most."""
    return (Entry(text, rank - len(earlier)) for rank, text in enumerate(earlier))


# ── 7: pending ───────────────────────────────────────────────────────────────


def pending(story: Digest, words: Wording, earlier: Sequence[str] = ()) -> Iterator[Entry]:
    titles: tuple[tuple[Status, str], ...] = (
        ("in_progress", words.in_progress),
        ("open", words.open),
        ("cancelled", words.cancelled),
        ("done", words.done),
    )
    listed = todos(story.steps)
    if not listed:
        yield from (Entry(text, 5) for text in earlier)
    for rank, (status, title) in enumerate(titles):
        for todo in listed:
            if todo.status == status:
                yield Entry(f"- {title}: {one_line(todo.text, 200)}", 10 - rank)
    if plan := plan_of(story.steps):
        yield Entry(f"- {words.plan}: {one_line(plan, 200)}", 9)
    for title in background(story.steps):
        yield Entry(f"- {words.running}: {one_line(title, 160)}", 9.5)


# ── 8 and 9: where the work stands ───────────────────────────────────────────

_SHOWN_STEPS = 16
_SHOWN_SAID = 8


def current_work(story: Digest, words: Wording) -> Iterator[Entry]:
    """The newest turn's last rounds: what was said, called and answered, oldest first."""
    start = story.turns[-1].index if story.turns else 0
    said = [each for each in story.said if each.index > start][-_SHOWN_SAID:]
    steps = [step for step in story.steps if step.action.role != "todo"][-_SHOWN_STEPS:]
    found = list[tuple[int, Entry]]()
    for age, each in enumerate(reversed(said)):
        text = plain(each.text, 600 if age == 0 else 240)
        found.append((each.index, Entry(f"- {words.said}: “{text}”", 200 - 11 * age)))
    for age, step in enumerate(reversed(steps)):
        line = step_line(step, words, excerpt_lines=4 if age < 3 else 1)
        found.append((step.index, Entry(line, 195 - 9 * age)))
    return (entry for _, entry in sorted(found, key=lambda pair: pair[0]))


def step_line(step: Step, words: Wording, *, excerpt_lines: int = 1) -> str:
    """One call and what came of it."""
    action = step.action
    about = action.path if action.role in ("read", "edit", "write") and action.path else action.gist
    line = f"- {action.tool} `{one_line(about, 120)}`" if about else f"- {action.tool}"
    if step.outcome is None:
        return f"{line} → {words.no_result}"
    if step.has_failed:
        return f"{line} → {words.failed}: `{one_line(error_line(step.outcome.text), 160)}`"
    if action.role in ("edit", "write"):
        lines = [one_line(text, 100) for text in added_lines(action)[:excerpt_lines]]
        return "\n".join((f"{line}:", *(f"  + `{text}`" for text in lines))) if lines else line
    if action.role in ("read", "grep", "glob", "todo"):
        return line
    telling = _telling_line(step.outcome.text, is_report=action.role in _REPORTING)
    return f"{line} → `{one_line(telling, 120)}`" if telling else line


def _telling_line(text: str, *, is_report: bool) -> str:
    """A report's first heading, else its first line; of any other result the last line."""
    if not is_report:
        lines = reversed(text[-_RESULT_CHARS:].splitlines())
        return next((line for line in lines if _SAYING.search(line)), "")
    lines = [line for line in text[:_RESULT_CHARS].splitlines() if _SAYING.search(line)]
    return next((line for line in lines if line.startswith(("#", "**"))), next(iter(lines), ""))


_RESULT_CHARS = 1_200
_REPORTING = frozenset({"subagent", "web_search", "web_fetch", "skill", "ask"})
"""Roles whose results begin with what they found; others end with how it went."""
_SAYING = re.compile(r"[^\W_]{3}")
"""A line of a result that is more than brackets."""


def next_step(story: Digest, words: Wording) -> Iterator[Entry]:
    """Where the newest turn stands, with the last words or the last call verbatim."""
    turn = story.turns[-1] if story.turns else None
    start = turn.index if turn else -1
    said, called = story.said[-1:], story.steps[-1:]
    if said and said[0].index > start:
        has_more = any(todo.status == "in_progress" for todo in todos(story.steps))
        is_idle = turn is not None and not turn.is_open and not has_more
        yield _standing(words.idle if is_idle else words.under_way, _ending(said[0].text))
    elif called and called[0].index > start:
        action = called[0].action
        yield _standing(words.under_way, one_line(f"{action.tool} {action.gist}", 300))
    elif said:
        yield _standing(words.unanswered, _ending(said[0].text))


def _standing(title: str, words: str) -> Entry:
    return Entry(f"{title}:\n{quoted(words)}", 1)


def _ending(text: str) -> str:
    """The last paragraph, or the last 400 characters of it, from the beginning of a word."""
    last = text.rstrip()[-2_000:].rpartition("\n\n")[2].strip()
    return last if len(last) <= 400 else "…" + cut_before(last, 400).lstrip()
