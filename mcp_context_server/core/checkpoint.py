"""A session as text and back, so that who opens it need not fold it from its first entry.

A checkpoint is a cache: what can't be read any more is folded again from the transcript.
"""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import MappingProxyType
from typing import Any, cast

from pydantic import BaseModel

from mcp_context_server.core.breaker import Breaker
from mcp_context_server.core.edits import Entry, dump_entry, entry_type, load_entry
from mcp_context_server.core.growth import Growth, Point
from mcp_context_server.core.ledger import Ledger
from mcp_context_server.core.memory.notes import Mark, Section, SessionMemory
from mcp_context_server.core.messages import Message
from mcp_context_server.core.policy import Policy
from mcp_context_server.core.recovery.steps import RecoveryState
from mcp_context_server.core.session import Anchor, Caller, Contributor, Overhead, Session
from mcp_context_server.core.tokens.calibration import Calibration
from mcp_context_server.core.tokens.estimates import Tally
from mcp_context_server.core.tokens.images import Media
from mcp_context_server.core.tokens.usage import Usage
from mcp_context_server.core.toolsearch.catalog import Catalog
from mcp_context_server.core.toolsearch.deferral import Deferral, SearchMode
from mcp_context_server.core.toolsearch.toolset import Terms, Toolset

_KINDS: Mapping[str, type] = {
    kind.__name__: kind
    for kind in (
        Anchor,
        Breaker,
        Calibration,
        Caller,
        Catalog,
        Contributor,
        Deferral,
        Growth,
        Mark,
        Media,
        Overhead,
        Point,
        Policy,
        RecoveryState,
        SearchMode,
        Section,
        Session,
        SessionMemory,
        Tally,
        Terms,
        Toolset,
        Usage,
    )
}
"""What a session is made of besides messages and edits, by name; nothing else is ever made."""

_WORKED_OUT = frozenset(("ledger",))
"""Fields of a session that its view tells."""


def freeze(session: Session) -> str:
    """A session as text. Raises `TypeError` for a part that nobody has foreseen."""
    table = _Table()
    told = table.told(session)
    return json.dumps([table.messages, told], separators=(",", ":"))


def thaw(text: str) -> Session:
    """The session that `freeze` wrote. Raises `ValueError` where this version can't read it."""
    try:
        raw, told = json.loads(text)
        session = _read(told, [Message.model_validate(each) for each in raw])
    except (KeyError, TypeError, RecursionError) as error:
        message = f"the checkpoint can't be read: {error}"
        raise ValueError(message) from error
    if not isinstance(session, Session):
        message = "the checkpoint holds no session"
        raise ValueError(message)  # noqa: TRY004 - what is wrong is the text
    return session


class _Table:
    """The messages of a session, each written once however often it stands in it."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self._places: dict[int, int] = {}

    def told(self, value: object) -> Any:
        """A value as JSON data: an object names its kind, a list is a tuple."""
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, Message):
            return {"message": self._place(value)}
        if isinstance(value, tuple):
            return [self.told(each) for each in cast("tuple[object, ...]", value)]
        if isinstance(value, frozenset):
            return {"set": sorted(cast("frozenset[str]", value))}
        if isinstance(value, Mapping):
            pairs = cast("Mapping[str, object]", value).items()
            return {"map": {name: self.told(each) for name, each in pairs}}
        return self._named(value)

    def _named(self, value: object) -> Any:
        kind = type(value).__name__
        if is_dataclass(value) and kind in _KINDS:
            kept = (f.name for f in fields(value) if f.init and f.name not in _WORKED_OUT)
            return {"of": kind, "fields": {name: self.told(getattr(value, name)) for name in kept}}
        if isinstance(value, BaseModel) and kind in _KINDS:
            return {"of": kind, "model": value.model_dump(exclude_unset=True)}
        entry = cast("Entry", value)
        return {"edit": entry_type(entry), "body": dump_entry(entry)}

    def _place(self, message: Message) -> int:
        place = self._places.get(id(message))
        if place is None:
            place = self._places[id(message)] = len(self.messages)
            self.messages.append(dump_entry(message))
        return place


def _read(told: Any, messages: list[Message]) -> Any:
    match told:
        case list():
            return tuple(_read(each, messages) for each in cast("list[Any]", told))
        case {"message": place}:
            return messages[cast("int", place)]
        case {"set": members}:
            return frozenset(cast("list[str]", members))
        case {"map": pairs}:
            return MappingProxyType({name: _read(each, messages) for name, each in pairs.items()})
        case {"edit": kind, "body": body}:
            return load_entry(kind, body)
        case {"of": kind, "model": body}:
            return cast("type[BaseModel]", _KINDS[kind]).model_validate(body)
        case {"of": kind, "fields": parts}:
            read = {name: _read(each, messages) for name, each in parts.items()}
            if kind == "Session":
                ledger = Ledger.of(read["view"], Session(model=read["model"]).family)
                return Session(**read, ledger=ledger)
            return _KINDS[kind](**read)
        case _:
            return told
