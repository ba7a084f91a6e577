"""The summary's own words, by language: section titles and the phrases between verbatim text."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from mcp_context_server.core.summary.language import language_of


@dataclass(frozen=True, slots=True)
class Wording:
    """What a summary says in its own voice, in one language; see `wording.json`.

    No phrase is an order to the reader. A language may leave out what is as in English.
    """

    name: str
    """The language, in English."""
    sections: tuple[str, ...]
    """The nine titles, in order."""
    working_set: str
    # sections 1 and 2
    first_request: str
    newest_below: str
    rule: str
    focus: str
    file_kinds: str
    programs: str
    tools_called: str
    terms: str
    # section 3 and the working set
    read: str
    edited: str
    written: str
    newest_change: str
    tools: str
    directories: str
    ids: str
    in_command: str
    in_report: str
    in_search: str
    in_tool: str
    in_talk: str
    # sections 4 and 5
    failed: str
    fixed: str
    not_fixed: str
    changed: str
    answered: str
    answer_of: str
    # section 6
    left_out: str
    same_as: str
    above: str
    more_requests: str
    requests_too: str
    # section 7
    done: str
    in_progress: str
    open: str
    cancelled: str
    plan: str
    running: str
    all_done: str
    # sections 8 and 9
    said: str
    no_result: str
    under_way: str
    idle: str
    unanswered: str
    none: str


def wording_for(texts: Iterable[str]) -> Wording:
    """The wording in the language of a person's messages; English where it is not in the table."""
    return wordings().get(language_of(texts)) or english()


def english() -> Wording:
    return wordings()["en"]


@cache
def wordings() -> Mapping[str, Wording]:
    """Every language of the table, by its two-letter code."""
    source = (
        files("mcp_context_server.core.summary")
        .joinpath("wording.json")
        .read_text(encoding="utf-8")
    )
    table: dict[str, dict[str, Any]] = json.loads(source)
    return {code: _wording({**table["en"], **phrases}) for code, phrases in table.items()}


def _wording(phrases: Mapping[str, Any]) -> Wording:
    given: dict[str, Any] = {**phrases, "sections": tuple(phrases["sections"])}
    return Wording(**given)
