"""Reading a summary back: which of the nine sections it has, and what stands in them."""

import re
from collections.abc import Iterator, Mapping
from functools import cache

from mcp_context_server.core.summary.wording import wordings

PREAMBLE = 0
WORKING_SET = 10
"""Numbers for what stands before the first section, and for the index after the ninth."""

_HEADING = re.compile(
    r"^[ \t]{0,3}(?P<mark>#{1,6}[ \t]*)?(?P<bold>\*\*|__)?[ \t]*(?:(?P<number>\d{1,2})[.):][ \t]*)?"
    r"(?P<bold2>\*\*)?(?P<title>[^\n*#:>|]{2,80}?)[ \t]*(?P<end>[:：]?(?:\*\*|__)?[:：]?)[ \t]*$"
)
_LONGEST_HEADING_CHARS = 120
_SECOND_TITLES = {"work completed": 8, "context for continuing work": 9}


def sections_of(summary: str) -> dict[int, str]:
    """The text of each section of a summary by its number, whichever way headings are marked.

    Headings are known by their title in any language of the table, else by a number
    that goes on from the last heading's together with a mark, bold type or a colon.
    """
    found: dict[int, list[str]] = {}
    current = PREAMBLE
    for line in summary.splitlines():
        number = _heading(line, current)
        if number is None:
            found.setdefault(current, []).append(line)
        else:
            current = number
            found.setdefault(current, [])
    texts = {number: "\n".join(lines).strip() for number, lines in found.items()}
    return {number: text for number, text in texts.items() if number or text}


def is_summary_text(text: str) -> bool:
    """Whether a text has the titles of the first and the sixth section, in one language."""
    return any(
        words.sections[0] in text and words.sections[5] in text for words in wordings().values()
    )


def _heading(line: str, current: int) -> int | None:
    match = _HEADING.match(line) if len(line) <= _LONGEST_HEADING_CHARS else None
    if match is None:
        return None
    known = _titles().get(match["title"].strip().lower())
    is_marked = bool(match["mark"] or match["bold"] or match["bold2"])
    number = int(match["number"]) if match["number"] else None
    if known is not None and (is_marked or number is not None or match["end"]):
        return known
    if number is None or not current < number <= 9:
        return None
    is_next = number == current + 1 and match["end"].strip("*_ ") != ""
    return number if match["mark"] or is_next else None


@cache
def _titles() -> Mapping[str, int]:
    titles = dict(_SECOND_TITLES)
    for words in wordings().values():
        titles[words.working_set.lower()] = WORKING_SET
        titles |= {title.lower(): n for n, title in enumerate(words.sections, 1)}
    return titles


def entries_of(section: str) -> Iterator[str]:
    """The list items and paragraphs of a section, each with the lines that belong to it."""
    entry = list[str]()
    for line in section.splitlines():
        starts = line.strip() == "" or re.match(r"\s*(?:[-*•]|\d{1,3}[.)])[ \t]", line)
        if starts and entry:
            yield "\n".join(entry)
            entry = []
        if line.strip():
            entry.append(line)
    if entry:
        yield "\n".join(entry)


def quotes_in(section: str) -> Iterator[str]:
    """The quotations of a section, unquoted."""
    quote = list[str]()
    for line in (*section.splitlines(), ""):
        if line.startswith(">"):
            quote.append(line.removeprefix(">").removeprefix(" "))
        elif quote:
            yield "\n".join(quote)
            quote = []
