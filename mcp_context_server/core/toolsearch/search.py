"""Tool search: a query, and the deferred tools it finds.

`select:a,b` loads by name. Anything else is words, of which those written `+word`
must occur. A query that is a tool's name finds that tool first, with or without
its server's prefix, in any case, camelCase or snake_case alike.
"""

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

from mcp_context_server.core.messages import (
    Block,
    Message,
    Messages,
    Value,
    is_result,
    nested_blocks,
)
from mcp_context_server.core.policy import Policy
from mcp_context_server.core.toolsearch.catalog import (
    Catalog,
    Definition,
    Tally,
    bare_name,
    definition_for_answer,
    description,
    input_schema,
    parameters,
    search_hint,
    server_of,
)
from mcp_context_server.core.toolsearch.deferral import Deferral
from mcp_context_server.core.toolsearch.index import ToolIndex, ToolText
from mcp_context_server.core.toolsearch.words import parts, squash


@dataclass(frozen=True, slots=True)
class Select:
    """Load these tools."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Words:
    """Rank by these words."""

    text: str
    required: tuple[str, ...] = ()


Query = Select | Words

PIECE_CHARS = 3
"""A shorter piece of a name is in too many to mean one."""

MISSES_TOLD = 3
"""For how many of the names that aren't there the nearest are told."""


class Found(Value):
    """The answer to a query, ready for a tool's result."""

    matches: tuple[str, ...]
    query: str
    total_deferred_tools: int
    pending_mcp_servers: tuple[str, ...]
    """Servers whose tools may yet come: connecting or disconnected."""
    tools: tuple[dict[str, Any], ...]
    """Name, description and input_schema of the matches, as many as fit the budget."""
    tool_references: tuple[Block, ...]
    """The matches as blocks for a `tool_result`."""
    nearest: tuple[str, ...]
    """Names most like the query, where something asked for was not found."""
    note: str
    """What a reader should know beside the matches; "" if nothing."""


class CatalogIndex:
    """The index of one catalogue at a time, kept between searches.

    A cache and not a value: it costs nothing before the first search, and then
    takes in only what changed since the last.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._index = ToolIndex(policy.tool_ranking)
        self._catalog = Catalog()
        self._names: list[str] = []
        self._documents: dict[str, int] = {}
        self._gone: set[int] = set()

    def rank(self, catalog: Catalog, words: Words, without: Collection[str]) -> list[str]:
        """Names of the tools that match, but for those of `without`, best first."""
        self._cover(catalog)
        barred = self._gone | {self._documents[name] for name in without if name in self._documents}
        among: set[int] | None = None
        for word in words.required:
            among = self._holding(word) - barred if among is None else among & self._holding(word)
            if not among:
                break
        ranked = self._index.rank(words.text, among=among, without=barred)
        if among:
            ranked += sorted(among.difference(ranked))
        return [self._names[document] for document in ranked]

    def _holding(self, word: str) -> set[int]:
        """Documents with a required word: as a word anywhere, or inside a name or server."""
        inside = squash(word)
        named = {
            document
            for name, document in self._documents.items()
            if inside in squash(name) or inside in squash(server_of(self._catalog.by_name[name]))
        }
        return named | self._index.holding(word)

    def _cover(self, catalog: Catalog) -> None:
        """Index what is new or changed; start afresh where most of the index is left over."""
        if catalog is self._catalog:
            return
        if len(self._index) > 2 * len(catalog.definitions) + self._policy.tool_results_most:
            self._index, self._names = ToolIndex(self._policy.tool_ranking), []
            self._catalog = Catalog()
        before, documents = self._catalog.by_name, self._documents
        current = dict[str, int]()
        for name, definition in catalog.by_name.items():
            if before.get(name) == definition:
                current[name] = documents[name]
                continue
            current[name] = self._index.add(tool_text(definition, self._policy))
            self._names.append(name)
        self._catalog, self._documents = catalog, current
        self._gone = set(range(len(self._names))).difference(self._documents.values())


def parse(query: str, policy: Policy) -> Query:
    """A query as what it asks for; what is over the limit is not looked at."""
    asked = query[: policy.tool_query_chars].strip()
    head, colon, tail = asked.partition(":")
    if colon and head.strip().lower() == "select":
        names = (name.strip().strip("\"'`") for name in tail.replace("\n", ",").split(","))
        return Select(tuple(dict.fromkeys(name for name in names if squash(name))))
    tokens = asked.split()
    required = (token[1:] for token in tokens if token.startswith("+"))
    words = " ".join(token.lstrip("+") for token in tokens)
    return Words(words, tuple(dict.fromkeys(word for word in required if squash(word))))


def search(
    catalog: Catalog,
    query: str,
    *,
    index: CatalogIndex,
    policy: Policy,
    tally: Tally,
    deferral: Deferral | None = None,
    max_results: int | None = None,
) -> Found:
    """Find tools of a catalogue: among the deferred, or among all where none is.

    A name, with `select:` or alone, may be any tool's, deferred or not; one already
    loaded does no harm. The first definition is always given, the others within a budget.
    """
    limit = min(max(1, max_results or policy.tool_results), policy.tool_results_most)
    loaded = deferral.loaded if deferral and deferral.active else ()
    total = len(deferral.deferred) if deferral else len(catalog.definitions)
    match parse(query, policy):
        case Select(names):
            found = {name: resolve(catalog, name) for name in names[: policy.tool_results_most]}
            matches = tuple(dict.fromkeys(match for hits in found.values() for match in hits))
            missing = [name for name, hits in found.items() if not hits]
        case Words() as words:
            matches = _matches(catalog, words, index, loaded)[:limit]
            missing = [] if matches else [words.text] if squash(words.text) else []
        case _ as never:
            assert_never(never)
    return _answer(catalog, query, matches, missing, policy, tally, total)


def resolve(catalog: Catalog, name: str) -> tuple[str, ...]:
    """The tools that a name means; several where servers share it, none where none has it.

    Exact; else but for case and separators, with or without the prefix; else as the
    last parts of one tool's name only.
    """
    if name in catalog.by_name:
        return (name,)
    same = catalog.by_squashed_name.get(squash(name))
    if same:
        return same
    wanted = parts(name)
    like = catalog.by_last_part.get(wanted[-1], ()) if wanted else ()
    ending = tuple(n for n in like if parts(n)[-len(wanted) :] == wanted)
    return ending if len(ending) == 1 else ()


def nearest_names(catalog: Catalog, text: str, count: int) -> tuple[str, ...]:
    """The names most like a text, by the pairs of characters they share."""
    wanted = _pairs(text[:200])

    def likeness(definition: Definition) -> float:
        name = _pairs(bare_name(definition))
        return len(wanted & name) / (len(wanted) + len(name) or 1)

    ordered = sorted(catalog.definitions, key=likeness, reverse=True)
    return tuple(definition["name"] for definition in ordered[:count])


def remember(discovered: Sequence[str], names: Iterable[str], catalog: Catalog) -> tuple[str, ...]:
    """The discovered names with these added, without those that the catalogue no longer has."""
    both = dict.fromkeys((*discovered, *names))
    return tuple(name for name in both if name in catalog.by_name)


def schema_reminder(catalog: Catalog, name: str) -> str | None:
    """What to answer a call of a tool that isn't loaded: its schema; None for an unknown tool."""
    hits = resolve(catalog, name)
    if not hits:
        return None
    definition = catalog.by_name[hits[0]]
    schema = json.dumps(input_schema(definition), ensure_ascii=False, separators=(",", ":"))
    return (
        f"{hits[0]} is deferred and was called before it was loaded, so its arguments were not "
        f"checked against its schema. Load it with tool_search `select:{hits[0]}`, or call it "
        f"again with arguments that fit this input_schema: {schema}"
    )


def without_stale_references(messages: Messages, is_stale: Callable[[str], bool]) -> Messages:
    """The messages without references to tools that are no longer there, by their names.

    The API refuses a request with a `tool_reference` that names no entry of `tools`.
    """
    return tuple(_with_known_references(message, is_stale) for message in messages)


def tool_text(definition: Definition, policy: Policy) -> ToolText:
    """What of a definition is searched."""
    by_name = parameters(definition)
    most = policy.tool_indexed_chars
    return ToolText(
        name=bare_name(definition),
        server=server_of(definition),
        hint=search_hint(definition)[:most],
        description=description(definition)[:most],
        parameters=" ".join(by_name)[:most],
        parameter_texts="\n".join(map(description, by_name.values()))[:most],
    )


def _matches(
    catalog: Catalog, words: Words, index: CatalogIndex, loaded: Collection[str]
) -> tuple[str, ...]:
    if not squash(words.text):
        return ()
    ranked = index.rank(catalog, words, loaded)
    named = catalog.by_squashed_name.get(squash(words.text), ())
    if words.required:
        return tuple(dict.fromkeys((*(name for name in named if name in ranked), *ranked)))
    return tuple(dict.fromkeys((*named, *ranked))) or _names_with(catalog, squash(words.text))


def _names_with(catalog: Catalog, piece: str) -> tuple[str, ...]:
    """Tools with a piece of some length anywhere in their name; the shortest names first."""
    if len(piece) < PIECE_CHARS:
        return ()
    found = (
        name for form, names in catalog.by_squashed_name.items() if piece in form for name in names
    )
    return tuple(sorted(dict.fromkeys(found), key=len))


def _answer(
    catalog: Catalog,
    query: str,
    matches: tuple[str, ...],
    missing: Sequence[str],
    policy: Policy,
    tally: Tally,
    deferred: int,
) -> Found:
    tools = _within_budget([catalog.by_name[name] for name in matches], tally, policy)
    near = (nearest_names(catalog, name, policy.tool_nearest) for name in missing[:MISSES_TOLD])
    nearest = tuple(dict.fromkeys(name for names in near for name in names))
    return Found(
        matches=matches,
        query=query[: policy.tool_query_chars],
        total_deferred_tools=deferred,
        pending_mcp_servers=tuple(catalog.unavailable),
        tools=tuple(tools),
        tool_references=tuple({"type": "tool_reference", "tool_name": name} for name in matches),
        nearest=nearest,
        note=_note(catalog, matches, missing, nearest, len(matches) - len(tools)),
    )


def _within_budget(
    definitions: Sequence[Definition], tally: Tally, policy: Policy
) -> list[dict[str, Any]]:
    """The first definition, and those after it that fit."""
    given, left = list[dict[str, Any]](), policy.tool_answer_tokens
    for definition in definitions:
        tool = definition_for_answer(definition)
        left -= tally([tool])
        if given and left < 0:
            break
        given.append(tool)
    return given


def _note(
    catalog: Catalog,
    matches: Sequence[str],
    missing: Sequence[str],
    nearest: Sequence[str],
    left_out: int,
) -> str:
    said = list[str]()
    if not matches and not missing:
        said.append("The query has no words. Give some, or +required words, or select:name,name.")
    if missing:
        asked = ", ".join(repr(name[:80]) for name in missing[:MISSES_TOLD])
        said.append(f"No tool matches {asked}.")
        said.append(f"Nearest names: {', '.join(nearest)}." if nearest else "There are none.")
    if catalog.unavailable and (missing or not matches):
        states = (f"{server} ({state})" for server, state in catalog.unavailable.items())
        said.append(f"Tools may be missing while these servers are: {', '.join(states)}.")
    if left_out:
        said.append(f"{left_out} definitions are left out for size; select: them by name.")
    return " ".join(said)


def _pairs(text: str) -> set[str]:
    letters = f" {squash(text)} "
    return {letters[at : at + 2] for at in range(len(letters) - 1)}


def _with_known_references(message: Message, is_stale: Callable[[str], bool]) -> Message:
    if not any(_has_references(block) for block in message.blocks):
        return message
    blocks = tuple(_known_references(block, is_stale) for block in message.blocks)
    return message if blocks == message.blocks else message.with_blocks(blocks)


def _has_references(block: Block) -> bool:
    return any(inner.get("type") == "tool_reference" for inner in nested_blocks(block))


def _known_references(block: Block, is_stale: Callable[[str], bool]) -> Block:
    if not is_result(block) or not _has_references(block):
        return block
    kept = [
        inner
        for inner in nested_blocks(block)
        if inner.get("type") != "tool_reference" or not is_stale(str(inner.get("tool_name")))
    ]
    gone = {"type": "text", "text": "[The tools found here are no longer available.]"}
    return {**block, "content": kept or [gone]}
