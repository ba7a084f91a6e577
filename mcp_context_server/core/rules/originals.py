"""What was received, as digests: enough to tell whether protected parts come back unaltered."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from mcp_context_server.core.messages import Block, is_blocks, is_thinking

DIGEST_BYTES = 16
"""Length of a digest: enough that no two blocks share one."""

SEALED_DEPTH = 8
"""How deep encrypted parts are looked for inside a block."""


class Thought(NamedTuple):
    """Where a thinking block stood when it was received."""

    previous: str
    """Digest of the thinking before it; empty where there was none."""
    message: int
    run: int
    """The number of fallback blocks before it in its message."""
    prefix: str
    """Digest of the conversation before it, thinking and cache marks left out."""


@dataclass(frozen=True, slots=True)
class Originals:
    """Digests of what was received, for the rules about unaltered blocks."""

    thoughts: Mapping[str, Sequence[Thought]]
    """Where each thinking block stood, by digest; twice where one like it came twice."""
    thoughts_of: Mapping[int, tuple[str, ...]]
    """Digests of the thinking blocks of each message, in order."""
    sealed: frozenset[str]
    """Digests of compaction blocks, and of every encrypted part."""

    @classmethod
    def of(cls, messages: Iterable[object]) -> "Originals":
        """The originals of a conversation, as it would have been sent had nothing been cleared."""
        thoughts, sealed = defaultdict[str, list[Thought]](list), set[str]()
        by_message, prefix, previous = dict[int, tuple[str, ...]](), Prefix(), ""
        for number, message in enumerate(map(_as_object, messages)):
            run, own = 0, list[str]()
            for block in blocks_of(message):
                if is_thinking(block):
                    own.append(digest(block))
                    thought = Thought(previous, number, run, prefix.digest())
                    thoughts[own[-1]].append(thought)
                    previous = own[-1]
                run += block.get("type") == "fallback"
                prefix.add(str(message.get("role")), block)
                sealed.update(sealed_parts(block))
            by_message[number] = tuple(own)
        return cls(dict(thoughts), by_message, frozenset(sealed))


class Prefix:
    """The running digest of a conversation, as thinking blocks are bound to it.

    Thinking may be dropped and cache marks may move without breaking the bond, so
    neither counts; nor does how consecutive blocks of one role are cut into messages.
    """

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=DIGEST_BYTES)

    def add(self, role: str, block: Mapping[str, Any]) -> None:
        """Takes the next block into account."""
        if not is_thinking(block):
            self._hash.update(f"{role}{digest(block)}".encode())

    def digest(self) -> str:
        """The digest of what was added so far."""
        return self._hash.copy().hexdigest()


def blocks_of(message: Mapping[str, Any]) -> Sequence[Block]:
    """The blocks of a wire message; a string is one text block."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if is_blocks(content) else ()


def digest(block: Mapping[str, Any]) -> str:
    """A block's digest, its cache mark left out."""
    plain = {name: value for name, value in block.items() if name != "cache_control"}
    return _digest(plain)


def sealed_parts(block: Mapping[str, Any]) -> Iterator[str]:
    """Digests of what must come back as it was: a compaction block, and encrypted parts."""
    if block.get("type") == "compaction":
        yield digest(block)
    elif block.get("type") not in ("tool_use", "tool_result"):
        yield from (_digest(part) for part in _encrypted(block, SEALED_DEPTH))


def _as_object(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _encrypted(value: object, depth: int) -> Iterator[object]:
    if isinstance(value, Mapping):
        for name, inner in cast("Mapping[object, object]", value).items():
            if str(name).startswith("encrypted_"):
                yield inner
            elif depth:
                yield from _encrypted(inner, depth - 1)
    elif isinstance(value, list | tuple) and depth:
        for inner in cast("Sequence[object]", value):
            yield from _encrypted(inner, depth - 1)


def _digest(value: object) -> str:
    return hashlib.blake2b(_canonical(value), digest_size=DIGEST_BYTES).hexdigest()


def _canonical(value: object) -> bytes:
    """JSON with sorted names; what is no JSON as near to it as can be."""
    for how in ({"sort_keys": True}, {"skipkeys": True, "default": str}):
        try:
            return json.dumps(value, **cast("dict[str, Any]", how)).encode()
        except (TypeError, ValueError, RecursionError):
            continue
    return b"unreadable"
