"""The extractive summary: nine sections and a working set, written from the conversation itself.

Nothing is invented and no model is asked: requests, decisions, errors, to-dos and
the newest steps are quoted, files and symbols are listed with what was done to them.
The same messages and budget always give the same text.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from mcp_context_server.core import sections
from mcp_context_server.core.digest import Digest, digest
from mcp_context_server.core.identifiers import names_in
from mcp_context_server.core.index import References, index_lines
from mcp_context_server.core.messages import Message
from mcp_context_server.core.policy import Policy
from mcp_context_server.core.sections import Entry
from mcp_context_server.core.text import Count, clipped, third_of_chars
from mcp_context_server.core.wording import ENGLISH, Wording
from mcp_context_server.core.working_set import WorkingSet, default_policy, weighed_set

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
    policy: Policy | None = None,
) -> str:
    """The summary of these messages within the budget; empty where there are no messages."""
    if not messages:
        return ""
    policy = policy or default_policy()
    story = digest(messages)
    writer = _Writer(
        story=story,
        things=weighed_set(messages, story, policy=policy),
        count=count,
        references=references or (lambda id: None),
        focus=instructions,
        policy=policy,
        words=ENGLISH,
    )
    return within(budget_tokens, count, writer.write)


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


@dataclass(frozen=True, slots=True)
class _Writer:
    story: Digest
    things: WorkingSet
    count: Count
    references: References
    focus: str
    policy: Policy
    words: Wording

    def write(self, budget: int) -> str:
        titles = [f"## {n}. {title}" for n, title in enumerate(self.words.sections, 1)]
        last_title = f"## {self.words.working_set}"
        left = budget - self.count("\n\n".join((*titles, last_title))) - len(titles)
        bodies = self._story(int(left * self.policy.story_fraction))
        told = "\n".join(line for body in bodies.values() for line in body)
        about, rest = index_lines(
            self.things,
            budget=left - self.count(told),
            count=self.count,
            references=self.references,
            words=self.words,
            known=names_in(told) - self.things.file_names,
        )
        bodies[3] = about
        parts = [
            "\n".join((title, *(bodies[n] or [self.words.none])))
            for n, title in enumerate(titles, 1)
        ]
        return "\n\n".join((*parts, "\n".join((last_title, *rest))) if rest else parts)

    def _story(self, room: int) -> dict[int, list[str]]:
        """The lines of each section but the third, within the room."""
        offered = self._offered(room)
        kept = {n: fitted(offered[n], int(room * share), self.count) for n, share in SHARES}
        left = room - sum(self._size(offered[n], kept[n]) for n in kept)
        for n, _ in SHARES:
            size = self._size(offered[n], kept[n])
            kept[n] = fitted(offered[n], size + left, self.count)
            left -= self._size(offered[n], kept[n]) - size
        return {n: [offered[n][i].text for i in sorted(kept[n])] for n in kept}

    def _size(self, entries: Sequence[Entry], kept: Iterable[int]) -> int:
        return sum(self.count(entries[i].text + "\n") for i in kept)

    def _offered(self, room: int) -> dict[int, list[Entry]]:
        story, words = self.story, self.words
        most = min(
            self.policy.verbatim_requests_tokens,
            int(room * self.policy.verbatim_requests_fraction),
        )
        requests = sections.asked(
            [turn.request for turn in story.turns], room=most, count=self.count, words=words
        )
        return {
            1: list(sections.intent(requests, words, self.focus)),
            2: list(sections.concepts(story, words)),
            4: list(sections.errors(story, words)),
            5: list(sections.solved(story, words, 1)),
            6: list(sections.user_messages(requests, words)),
            7: list(sections.pending(story, words)),
            8: list(sections.current_work(story, words)),
            9: list(sections.next_step(story, words)),
        }


def fitted(entries: Sequence[Entry], budget: int, count: Count) -> set[int]:
    """Positions of the weightiest entries that fit a budget."""
    left, kept = budget, set[int]()
    for i in sorted(range(len(entries)), key=lambda i: -entries[i].weight):
        cost = count(entries[i].text + "\n")
        if cost <= left:
            left -= cost
            kept.add(i)
    return kept
