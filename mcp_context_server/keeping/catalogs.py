"""Tool definitions by digest, and the indexes over them, kept between calls.

Both are caches: definitions come from the store when they are missing here, and an
index is built by the first search of a catalogue, from an earlier one where there is one.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence

import anyio
import anyio.to_thread

from mcp_context_server.core.edits import Entry, RegisterTools
from mcp_context_server.core.toolsearch.catalog import Definition, digest
from mcp_context_server.core.toolsearch.search import CatalogIndex, Found, search
from mcp_context_server.core.toolsearch.toolset import Batches, Toolset, price
from mcp_context_server.errors import StoreUnavailable
from mcp_context_server.ports import SessionStore

BATCHES_KEPT = 64
"""Batches of definitions kept in memory, so that sessions with the same tools share them."""

INDEXES_KEPT = 8
"""Indexes kept in memory; any other is built again by the next search."""


class Catalogs:
    """What the sessions of one process share of their tools."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._batches: OrderedDict[str, Sequence[Definition]] = OrderedDict()
        self._indexes: OrderedDict[tuple[str, ...], CatalogIndex] = OrderedDict()
        self._lock = anyio.Lock()

    @property
    def indexes(self) -> int:
        """How many indexes stand in memory."""
        return len(self._indexes)

    async def put(self, definitions: Sequence[Definition]) -> str:
        """Keep definitions in the store; their digest, by which they are found again."""
        name = digest(definitions)
        # Even if it is known here: it may be gone with the last session that used it.
        await self._store.put_catalog(name, definitions)
        self._remember(name, definitions)
        return name

    async def named_by(self, entries: Iterable[Entry]) -> Batches:
        """The definitions that entries name by digest. Raises `StoreUnavailable`."""
        found: dict[str, Sequence[Definition]] = {}
        for entry in entries:
            if isinstance(entry, RegisterTools) and entry.digest and entry.digest not in found:
                found[entry.digest] = await self._batch(entry.digest)
        return found

    async def search(self, tools: Toolset, query: str, max_results: int | None) -> Found:
        """Search a session's tools, one search at a time, without holding up other calls."""

        def find() -> Found:
            terms = tools.terms
            return search(
                tools.catalog,
                query,
                index=self._index_of(tools),
                policy=terms.policy,
                tally=lambda found: round(sum(price(tool, terms.family) for tool in found)),
                deferral=tools.deferral,
                max_results=max_results,
            )

        async with self._lock:
            return await anyio.to_thread.run_sync(find)

    async def _batch(self, name: str) -> Sequence[Definition]:
        if name in self._batches:
            self._batches.move_to_end(name)
            return self._batches[name]
        definitions = await self._store.get_catalog(name)
        if definitions is None:
            message = (
                f"The store has lost the tool definitions {name[:12]}… of this session. "
                "Open another session and register its tools again."
            )
            raise StoreUnavailable(message)
        self._remember(name, definitions)
        return definitions

    def _remember(self, name: str, definitions: Sequence[Definition]) -> None:
        self._batches[name] = definitions
        while len(self._batches) > BATCHES_KEPT:
            self._batches.popitem(last=False)

    def _index_of(self, tools: Toolset) -> CatalogIndex:
        """The index of a catalogue; the one of an earlier state goes on as this one's."""
        policy = tools.terms.policy
        weighed = policy.model_dump_json(include={"tool_ranking", "tool_indexed_chars"})
        states = ((weighed, *tools.history[:n]) for n in range(len(tools.history), 0, -1))
        known = next((state for state in states if state in self._indexes), None)
        index = self._indexes.pop(known) if known else CatalogIndex(policy)
        self._indexes[(weighed, *tools.history)] = index
        while len(self._indexes) > INDEXES_KEPT:
            self._indexes.popitem(last=False)
        return index
