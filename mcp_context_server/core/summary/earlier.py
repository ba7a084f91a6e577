"""What an earlier summary hands on to the next one, so that nothing is lost by compacting twice."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mcp_context_server.core.summary.digest import Turn
from mcp_context_server.core.summary.outline import entries_of, quotes_in, sections_of
from mcp_context_server.core.summary.stated import Rule, stated_rules
from mcp_context_server.core.summary.wording import wordings
from mcp_context_server.core.text import shortened

_LONGEST_ENTRY_CHARS = 600
_LIST_MARKS = "-*•0123456789.) \t"


@dataclass(frozen=True, slots=True)
class Earlier:
    """An earlier summary, taken apart."""

    requests: tuple[str, ...]
    """User messages that it quotes, the first of all first."""
    entries: Mapping[int, tuple[str, ...]]
    """Other list items and paragraphs by section, as they stood."""


NOTHING = Earlier((), {})


def earlier(summary: str) -> Earlier:
    """What an earlier summary hands on; a text without sections counts as what was settled."""
    if not summary.strip():
        return NOTHING
    sections = sections_of(summary)
    if 1 not in sections and 6 not in sections:
        sections = {5: summary}
    entries = {number: tuple(_carried(text)) for number, text in sections.items()}
    return Earlier(tuple(_requests(sections)), entries)


@dataclass(frozen=True, slots=True)
class Numbered:
    """All requests, and the number of each turn's among them, from 1."""

    texts: tuple[str, ...]
    numbers: tuple[int, ...]
    rules: tuple[tuple[Rule, ...], ...]
    """The rules stated in each text."""


def numbered(before: Earlier, turns: Sequence[Turn], covered: Collection[str]) -> Numbered:
    """The requests of an earlier summary and those of the turns since, each once.

    `covered` are ids of messages that the summary told of and that were kept behind it
    all the same: their words take the place of what it shows of them.
    """
    texts, numbers, start = list(before.requests), list[int](), 0
    rules = [stated_rules(text) for text in texts]
    for turn in turns:
        places = range(start, len(before.requests)) if turn.message_id in covered else ()
        place = next((i for i in places if _shows(texts[i], turn.request)), None)
        if place is None:
            texts.append(turn.request)
            rules.append(turn.rules)
            numbers.append(len(texts))
        else:
            texts[place], rules[place], start = turn.request, turn.rules, place + 1
            numbers.append(place + 1)
    return Numbered(tuple(texts), tuple(numbers), tuple(rules))


def _shows(shown: str, request: str) -> bool:
    """Whether a summary's quotation, cut in the middle or not, is of this request."""
    head, cut, _ = shown.partition(" […")
    words, known = _WORDS.findall(request), _WORDS.findall(head)
    return words == known or bool(cut and known and words[: len(known) - 1] == known[:-1])


_WORDS = re.compile(r"\w+")


def _requests(sections: Mapping[int, str]) -> Iterator[str]:
    """Quoted messages; where a section has none, as model-written ones may, its list items."""
    yield from list(quotes_in(sections.get(1, "")))[:1]
    messages = sections.get(6, "")
    if quotes := list(quotes_in(messages)):
        yield from quotes
    else:
        for entry in entries_of(messages):
            yield entry.lstrip(_LIST_MARKS).strip('"“”')


def _carried(section: str) -> Iterator[str]:
    for entry in entries_of(section):
        is_quote = any(line.lstrip().startswith(">") for line in entry.splitlines())
        if not is_quote and entry.strip() not in _phrases():
            yield shortened(entry, _LONGEST_ENTRY_CHARS, len, "…")


def _phrases() -> frozenset[str]:
    """Lines of a summary that are its own, in any language: they are written anew each time."""
    return frozenset(
        phrase
        for words in wordings().values()
        for phrase in (words.newest_below, words.none, words.all_done)
    )
