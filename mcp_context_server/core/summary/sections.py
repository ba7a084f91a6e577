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
from mcp_context_server.core.summary.entries import Entry, carried, item, quotation
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
from mcp_context_server.core.text import Count, cut_before, one_line, plain, shortened, unbroken


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
    yield from (carried(800, text) for text in earlier)
    if focus:
        yield item(950, f"- {words.focus}: “{one_line(focus, 300)}”")
    if len(requests.whole) > 1:
        yield quotation(1000, f"{words.first_request}:", requests.shown[0])
    for number, rule in rules:
        line = f"- {words.rule} ({number}): “{unbroken(rule.text)}”"
        if line not in earlier:
            yield item(rule.weight + number / 1000, line)
    if requests.whole:
        yield item(900, words.newest_below)


def rules_between(requests: Numbered) -> list[tuple[int, Rule]]:
    """The rules stated in requests that are not quoted whole: not in the first, nor the newest."""
    between = enumerate(requests.rules[1:-1], 2)
    return [(number, rule) for number, rules in between for rule in rules]


def user_messages(requests: Asked, words: Wording) -> Iterator[Entry]:
    seen = dict[str, int]()
    last = len(requests.whole) + requests.omitted
    if requests.omitted:
        yield item(1400, f"({requests.omitted} {words.more_requests})")
    for at, (whole, shown) in enumerate(zip(requests.whole, requests.shown, strict=True)):
        number = at + 1 + (requests.omitted if at else 0)
        if number == last:
            yield quotation(2000, f"{number}.", shown)
        elif at == 0:
            yield item(1500, f"1. ({words.above})")
        elif whole in seen:
            yield item(number, f"{number}. ({words.same_as} {seen[whole]})")
        else:
            yield quotation(number, f"{number}.", shown)
        seen.setdefault(whole, number)


# ── 2: concepts ──────────────────────────────────────────────────────────────

_TERM = re.compile(r"\*\*([^*\n`]{3,40})\*\*")
_MOST_LISTED = 8


def concepts(story: Digest, words: Wording, earlier: Sequence[str] = ()) -> Iterator[Entry]:
    known = tuple(
        f"- {title}:"
        for title in (words.file_kinds, words.programs, words.tools_called, words.terms)
    )
    yield from (carried(0.5, text) for text in earlier if not text.startswith(known))
    kinds = Counter(_extension(path) for path in story.files)
    if listed := ", ".join(f"{kind} ({n})" for kind, n in kinds.most_common(6) if kind):
        yield item(3, f"- {words.file_kinds}: {listed}")
    programs = Counter(subject(s.action) for s in story.steps if s.action.role == "shell")
    if listed := ", ".join(
        f"`{one_line(k, 40)}` {n}×" for k, n in programs.most_common(_MOST_LISTED) if k
    ):
        yield item(2, f"- {words.programs}: {listed}")
    tools = Counter(step.action.tool for step in story.steps)
    if listed := ", ".join(f"{one_line(k, 40)} {n}×" for k, n in tools.most_common(12) if k):
        yield item(1.5, f"- {words.tools_called}: {listed}")
    terms = Counter(
        term.strip(" :.")
        for said in story.said[-60:]
        for term in set(_TERM.findall(said.text[:8000]))
    )
    frequent = [term for term, n in terms.most_common(_MOST_LISTED) if n > 1 and len(term) > 3]
    if frequent:
        yield item(1, f"- {words.terms}: {', '.join(frequent)}")


def _extension(path: str) -> str:
    name = path.replace("\\", "/").rpartition("/")[2]
    found = _EXTENSION.search(name)
    return found[0] if found else ""


_EXTENSION = re.compile(r"(?<=.)\.[\w~+-]{1,16}$")


# ── 4 and 5: what went wrong, and what was achieved ──────────────────────────


def errors(story: Digest, words: Wording, earlier: Sequence[str] = ()) -> Iterator[Entry]:
    yield from _before(earlier)
    for failure in failures(story.steps):
        if failure.error:
            open_bonus = 0 if failure.is_fixed else story.size / 4
            yield item(failure.step.index + open_bonus, _failure(failure, words))


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
            yield item(
                turn.index, f"- {number} “{title}” {words.answered}: “{plain(turn.answer, 280)}”"
            )
    for step in story.steps:
        if step.action.role == "ask" and step.outcome and not step.has_failed:
            reply = one_line(step.outcome.text, 200)
            yield item(
                step.index, f"- {words.answer_of} “{one_line(step.action.gist, 80)}”: “{reply}”"
            )
        if not step.has_failed and (made := commit_subject(step)):
            yield item(step.index + 0.5, f"- `git commit`: “{one_line(made, 100)}”")


_MOST_TURNS = 60


def _before(earlier: Sequence[str]) -> Iterator[Entry]:
    """Entries of an earlier summary: worth less than any of this one, the last most."""
    return (carried(rank - len(earlier), text) for rank, text in enumerate(earlier))


# ── 7: pending ───────────────────────────────────────────────────────────────


def pending(story: Digest, words: Wording, earlier: Sequence[str] = ()) -> Iterator[Entry]:
    """What is left to do, and that nothing is where the to-dos are all settled."""
    found = list(_listed(story, words, earlier))
    settled = (f"- {words.done}:", f"- {words.cancelled}:")
    if found and all(entry.text.startswith(settled) for entry in found):
        yield item(11, words.all_done)
    yield from found


def _listed(story: Digest, words: Wording, earlier: Sequence[str]) -> Iterator[Entry]:
    titles: tuple[tuple[Status, str], ...] = (
        ("in_progress", words.in_progress),
        ("open", words.open),
        ("cancelled", words.cancelled),
        ("done", words.done),
    )
    listed = todos(story.steps)
    if not listed:
        yield from (carried(5, text) for text in earlier)
    for rank, (status, title) in enumerate(titles):
        for todo in listed:
            if todo.status == status:
                yield item(10 - rank, f"- {title}: {one_line(todo.text, 200)}")
    if plan := plan_of(story.steps):
        yield item(9, f"- {words.plan}: {one_line(plan, 200)}")
    for title in background(story.steps):
        yield item(9.5, f"- {words.running}: {one_line(title, 160)}")


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
        found.append((each.index, item(200 - 11 * age, f"- {words.said}: “{text}”")))
    for age, step in enumerate(reversed(steps)):
        lines = step_lines(step, words, excerpt_lines=4 if age < 3 else 1)
        found.append((step.index, item(195 - 9 * age, *lines)))
    return (entry for _, entry in sorted(found, key=lambda pair: pair[0]))


def step_lines(step: Step, words: Wording, *, excerpt_lines: int = 1) -> list[str]:
    """One call and what came of it, and what it brought into a file."""
    action = step.action
    about = action.path if action.role in ("read", "edit", "write") and action.path else action.gist
    line = f"- {action.tool} `{one_line(about, 120)}`" if about else f"- {action.tool}"
    if step.outcome is None:
        return [f"{line} → {words.no_result}"]
    if step.has_failed:
        return [f"{line} → {words.failed}: `{one_line(error_line(step.outcome.text), 160)}`"]
    if action.role in ("edit", "write"):
        lines = [one_line(text, 100) for text in added_lines(action)[:excerpt_lines]]
        return [f"{line}:", *(f"  + `{text}`" for text in lines)] if lines else [line]
    if action.role in ("read", "grep", "glob", "todo"):
        return [line]
    telling = _telling_line(step.outcome.text, is_report=action.role in _REPORTING)
    return [f"{line} → `{one_line(telling, 120)}`" if telling else line]


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
    return quotation(1, f"{title}:", words)


def _ending(text: str) -> str:
    """The last paragraph, or the last 400 characters of it, from the beginning of a word."""
    last = text.rstrip()[-2_000:].rpartition("\n\n")[2].strip()
    return last if len(last) <= 400 else "…" + cut_before(last, 400).lstrip()
