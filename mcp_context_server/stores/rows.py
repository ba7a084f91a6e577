"""Entries as the rows of a database, the same in every one: JSON text, keys, searchable text."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from mcp_context_server.core.edits import Entry, RegisterTools, dump_entry, load_entry
from mcp_context_server.core.messages import Message
from mcp_context_server.core.recall import folded, searchable
from mcp_context_server.errors import InvalidInput, brief
from mcp_context_server.ports import Kind, Numbered, SessionRecord

KEY_CHARS = 400
"""Longest key that stands in an index as it is; a longer one stands there by its digest."""


def body_of(entry: Entry) -> str:
    """An entry as JSON text."""
    return json_text(dump_entry(entry))


def numbered(sequence: int, kind: str, body: str) -> Numbered:
    """The entry that `body_of` wrote, with its sequence number."""
    return sequence, load_entry(kind, cast("dict[str, Any]", json.loads(body)))


def digests_of(entries: Sequence[Entry]) -> list[str]:
    """The digests by which entries name tool definitions, each once."""
    named = (entry.digest for entry in entries if isinstance(entry, RegisterTools))
    return list(dict.fromkeys(digest for digest in named if digest))


def json_text(data: object) -> str:
    """Data as JSON text; escaped throughout only where it holds what UTF-8 can't."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text if is_utf8(text) else json.dumps(data, separators=(",", ":"))


def is_utf8(text: str) -> bool:
    """Whether UTF-8 can hold a text: half a surrogate pair it can't."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def key_of(name: str) -> str:
    """A key that any index takes, equal for equal names only."""
    if len(name) <= KEY_CHARS and "\0" not in name and is_utf8(name):
        return name
    return "sha256:" + hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


def is_storable(session_id: str) -> bool:
    """Whether a session can have this id."""
    return bool(session_id) and key_of(session_id) == session_id


def refuse_unstorable(session_id: str) -> None:
    """Raises `InvalidInput` for an id that no session can have."""
    if not is_storable(session_id):
        message = (
            f"No session can be named {brief(session_id)}: an id is 1 to {KEY_CHARS} characters "
            "of text, without NUL. Leave it out to get one."
        )
        raise InvalidInput(message)


def session_record(
    session_id: str, principal: str, kind: str, parent_id: str | None, created_at: str
) -> SessionRecord:
    return SessionRecord(
        session_id=session_id,
        principal=principal,
        kind=cast("Kind", kind),
        parent_id=parent_id,
        created_at=created_at,
    )


@dataclass(frozen=True, slots=True)
class Passage:
    """What a search looks through: the folded text of the messages in a run of entries."""

    first: int
    last: int
    text: str


PASSAGE_ENTRIES = 16
"""Most entries of one passage: all of them are read where it holds what is searched for."""


def passages_of(entries: Sequence[Entry], version: int) -> Iterator[Passage]:
    """The passages of entries that come after a version; none of those without any text."""
    for start in range(0, len(entries), PASSAGE_ENTRIES):
        run = entries[start : start + PASSAGE_ENTRIES]
        text = "\n".join(folded(searchable(e)) for e in run if isinstance(e, Message))
        if text:
            yield Passage(version + start + 1, version + start + len(run), text)
