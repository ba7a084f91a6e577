"""The extractive summary: nine sections and a working set, written from the conversation itself.

Nothing is invented and no model is asked: requests, decisions, errors, to-dos and
the newest steps are quoted, files and symbols are listed with what was done to them.
The same messages and budget always give the same text.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from mcp_context_server.core.markers import neutralise
from mcp_context_server.core.messages import Message
from mcp_context_server.core.policy import Policy
from mcp_context_server.core.redact import redact
from mcp_context_server.core.summary import sections
from mcp_context_server.core.summary.digest import Digest, digest
from mcp_context_server.core.summary.earlier import Earlier, Numbered, earlier, numbered
from mcp_context_server.core.summary.entries import Entry, carried
from mcp_context_server.core.summary.identifiers import names_in
from mcp_context_server.core.summary.index import References, index_lines
from mcp_context_server.core.summary.stated import Rule
from mcp_context_server.core.summary.wording import Wording, wording_for, wordings
from mcp_context_server.core.summary.working_set import WorkingSet, weighed_set
from mcp_context_server.core.text import Count, clipped, third_of_chars

SHARES: tuple[tuple[int, float], ...] = (
    (6, 0.26),
    (8, 0.22),
    (7, 0.10),
    (9, 0.05),
    (1, 0.13),
    (4, 0.10),
    (5, 0.11),
    (2, 0.03),
)
"""The story's sections in the order in which they are served, with their share of it."""


def extractive_summary(
    messages: Sequence[Message],
    *,
    budget_tokens: int,
    count: Count = third_of_chars,
    references: References | None = None,
    instructions: str = "",
    previous_summary: str | None = None,
    language: str | None = None,
    covered: Collection[str] = (),
    policy: Policy | None = None,
) -> str:
    """The summary of these messages within the budget; empty where there are no messages.

    `references` gives the reference that `recall` opens for a message or tool_use id.
    `instructions` bring forward what they name. `previous_summary` is that of an
    earlier compaction; without one, the newest among the messages is carried on.
    `language` is a two-letter code; without one it is the user's. `covered` are ids of
    messages that the earlier summary told of, and that were kept behind it all the same.
    """
    if not messages:
        return ""
    policy = policy or Policy()
    story = digest(messages, policy.compactable_tools)
    before = earlier(story.earlier if previous_summary is None else previous_summary)
    requests = numbered(before, story.turns, covered)
    words = _wording(language, requests.texts)
    writer = _Writer(
        story=story,
        before=before,
        requests=requests,
        things=weighed_set(messages, story, policy=policy, focus=names_in(instructions)),
        count=count,
        references=references or (lambda id: None),
        focus=instructions,
        policy=policy,
        words=words,
        rules=sections.rules_between(requests),
        settled=_settled(story, before.entries, requests.numbers, words),
    )
    return within(budget_tokens, count, writer.write)


def _wording(language: str | None, texts: Sequence[str]) -> Wording:
    return wordings().get(language or "") or wording_for(texts)


def within(budget: int, count: Count, write: Callable[[int], str]) -> str:
    """What `write` gives for a budget, asked for less where it overran, and cut at last."""
    text, asked_for = "", budget
    for _ in range(_ATTEMPTS):
        text = write(asked_for)
        excess = count(text) - budget
        if excess <= 0:
            return text
        asked_for -= excess + asked_for // 50
    return clipped(text, budget, count)


_ATTEMPTS = 4
_WORTH_MORE_STORY = 0.1
"""The share of the room that must be free for the story to be written again with it."""


@dataclass(frozen=True, slots=True)
class _Writer:
    story: Digest
    before: Earlier
    requests: Numbered
    things: WorkingSet
    count: Count
    references: References
    focus: str
    policy: Policy
    words: Wording
    rules: Sequence[tuple[int, Rule]]
    settled: Mapping[int, Sequence[Entry]]
    """The sections that say the same whatever room there is."""

    def write(self, budget: int) -> str:
        titles = [f"## {n}. {title}" for n, title in enumerate(self.words.sections, 1)]
        last_title = f"## {self.words.working_set}"
        left = budget - self.count("\n\n".join((*titles, last_title))) - len(titles)
        room = int(left * self.policy.story_fraction)
        bodies, rest, spare = self._bodies(room, left)
        if spare > left * _WORTH_MORE_STORY:  # little to list: the story has the room
            bodies, rest, _ = self._bodies(room + spare, left)
        parts = [
            "\n".join((title, *(bodies[n] or [self.words.none])))
            for n, title in enumerate(titles, 1)
        ]
        if rest:
            parts.append("\n".join((last_title, *rest)))
        text = neutralise("\n\n".join(parts))
        return redact(text, enabled=self.policy.mask_secrets)

    def _bodies(self, room: int, left: int) -> tuple[dict[int, list[str]], list[str], int]:
        """The nine sections' lines and the working set's, and how much of `left` they leave."""
        bodies = self._story(room)
        told = "\n".join(line for body in bodies.values() for line in body)
        known = names_in(told) - names_in(self.focus)
        spare = left - self.count(told)
        bodies[3], rest = self._index(spare, known)
        return bodies, rest, spare - self.count("\n".join((*bodies[3], *rest)))

    def _story(self, room: int) -> dict[int, list[str]]:
        """The lines of each section but the third, within the room.

        What the others leave free is the requests'.
        """
        most = int(room * self.policy.verbatim_requests_fraction)
        lines, spare = self._told(room, most)
        if spare > room * _WORTH_MORE_STORY:
            lines, _ = self._told(room, most + spare)
        return lines

    def _told(self, room: int, most: int) -> tuple[dict[int, list[str]], int]:
        """The lines with at most so much for the requests, and what of the room is free."""
        offered = self._offered(most)
        kept = {n: fitted(offered[n], int(room * share), self.count) for n, share in SHARES}
        left = room - sum(self._size(offered[n], kept[n]) for n in kept)
        for n, _ in SHARES:
            size = self._size(offered[n], kept[n])
            kept[n] = fitted(offered[n], size + left, self.count)
            left -= self._size(offered[n], kept[n]) - size
        return {n: [offered[n][i].text for i in sorted(kept[n])] for n in kept}, left

    def _size(self, entries: Sequence[Entry], kept: Iterable[int]) -> int:
        return sum(self.count(entries[i].text + "\n") for i in kept)

    def _offered(self, most: int) -> dict[int, list[Entry]]:
        requests, earlier_intent = self._requests(most), self.before.entries.get(1, ())
        offered: dict[int, Iterable[Entry]] = {
            **self.settled,
            1: sections.intent(requests, self.words, self.focus, earlier_intent, self.rules),
            6: sections.user_messages(requests, self.words),
        }
        wanted = _wanted(self.focus)
        return {
            n: [_focused(entry, wanted) for entry in _once(each)] for n, each in offered.items()
        }

    def _requests(self, most: int) -> sections.Asked:
        room = min(self.policy.verbatim_requests_tokens, most)
        return sections.asked(self.requests.texts, room=room, count=self.count, words=self.words)

    def _index(self, budget: int, known: frozenset[str]) -> tuple[list[str], list[str]]:
        """Lines about files and lines of the working set; earlier lines where files are theirs."""
        earlier_lines = [
            carried(-rank, text)
            for rank, text in enumerate(self.before.entries.get(3, ()))
            if names_in(text).isdisjoint(self.things.file_names)
        ]
        room = int(budget * self.policy.earlier_files_fraction)
        kept = [earlier_lines[i].text for i in sorted(fitted(earlier_lines, room, self.count))]
        about, rest = index_lines(
            self.things,
            budget=budget - self.count("\n".join(kept)),
            count=self.count,
            references=self.references,
            words=self.words,
            known=known.union(*map(names_in, kept)) - self.things.file_names,
        )
        return [*about, *kept], rest


def _settled(
    story: Digest, before: Mapping[int, Sequence[str]], numbers: Sequence[int], words: Wording
) -> Mapping[int, Sequence[Entry]]:
    """What the sections offer that are not cut to a room, by their numbers."""
    done = (*before.get(5, ()), *_told(before.get(8, ())))
    return {
        2: [*sections.concepts(story, words, before.get(2, ()))],
        4: [*sections.errors(story, words, before.get(4, ()))],
        5: [*sections.solved(story, words, numbers, done)],
        7: [*sections.pending(story, words, before.get(7, ()))],
        8: [*sections.current_work(story, words)],
        9: [*sections.next_step(story, words)],
    }


_WANTED = re.compile(r"[^\W_]{4,}")


def _told(earlier_work: Sequence[str]) -> Sequence[str]:
    """What an earlier summary said of the work at its time, without the single calls."""
    return [text for text in earlier_work if not _A_CALL.match(text)][:_MOST_TOLD]


_A_CALL = re.compile(r"- \S+ `")
_MOST_TOLD = 3


def _once(entries: Iterable[Entry]) -> Iterable[Entry]:
    """Each entry once, where it comes last: what an earlier summary told may be told again."""
    last = {entry.text: entry for entry in entries}
    return last.values()


def _wanted(focus: str) -> Mapping[str, int]:
    return dict.fromkeys(_WANTED.findall(focus.lower()), 1)


def _focused(entry: Entry, wanted: Mapping[str, int]) -> Entry:
    """An entry that names what was asked for, brought forward among its like."""
    if not wanted or not any(word in wanted for word in _WANTED.findall(entry.text.lower())):
        return entry
    return Entry(entry.text, entry.weight + _FOCUS_WEIGHT)


_FOCUS_WEIGHT = 300


def fitted(entries: Sequence[Entry], budget: int, count: Count) -> set[int]:
    """Positions of the weightiest entries that fit a budget."""
    left, kept = budget, set[int]()
    for i in sorted(range(len(entries)), key=lambda i: -entries[i].weight):
        cost = count(entries[i].text + "\n")
        if cost <= left:
            left -= cost
            kept.add(i)
    return kept
