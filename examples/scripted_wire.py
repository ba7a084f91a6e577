"""The wire of the scripted Messages API: its error texts, its bill, its event stream."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from examples.scripted_agent import Body
from mcp_context_server.core.rules import Fault, ModelTraits

CHARACTERS_PER_TOKEN = 3.5
MEDIA_TOKENS = 1_500
CHARACTERS_PER_FIELD = 6
CHUNK_CHARACTERS = 160

Json = dict[str, Any]

# ── the API's words for a broken rule ────────────────────────────────────────

WORDING: Mapping[str, str] = {
    "R1": (
        "{message}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        "{ids}. Each `tool_use` block must have a corresponding `tool_result` block in the next "
        "message."
    ),
    "R4": (
        "{path}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` "
        "block must have a corresponding `tool_use` block in the previous message."
    ),
    "R5": "{path}: `tool_use` ids must be unique",
    "R6": (
        "{path}: each tool_use must have a single result. "
        "Found multiple `tool_result` blocks with id: {id}"
    ),
    "R7": "{path}.tool_use.input: Input should be a valid dictionary",
    "R8": "{path}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'",
    "R13": 'messages: first message must use the "user" role',
    "R15": "messages: text content blocks must be non-empty",
    "R16": "messages: text content blocks must contain non-whitespace text",
    "R17": (
        "{message}: all messages must have non-empty content except for the optional final "
        "assistant message"
    ),
    "R18": "messages: final assistant content cannot end with trailing whitespace",
    "R19": (
        "This model does not support assistant message prefill. "
        "The conversation must end with a user message."
    ),
    "R20": "messages: at most {most} messages are allowed",
    "R21": "{path}: Extra inputs are not permitted",
    "R28": "{message}: The final block in an assistant message cannot be `thinking`.",
    "R45": "A maximum of 4 blocks with cache_control may be provided.",
    "R59": "role 'system' is not supported on this model",
}
"""How the API words a broken rule, as public reports show it; other rules in our own words."""

MISPLACED = ("R2", "R3")
"""Rules about results in the wrong place: to the API their calls have none."""


def wording(faults: Sequence[Fault], messages: Sequence[Any], traits: ModelTraits) -> str:
    """The API's message for a request with these faults: it names the first."""
    first = faults[0]
    rule = "R1" if first.rule in MISPLACED else first.rule
    if rule not in WORDING:
        return f"{first.path}: {first.message}"
    at, block = _found(first.path, messages)
    alike = [_found(fault.path, messages) for fault in faults if fault.rule == first.rule]
    called = _before(messages, at) if first.rule in MISPLACED else at
    return WORDING[rule].format(
        path=first.path,
        message=f"messages.{called}",
        id=_call_id(block),
        ids=", ".join(_call_id(other) for place, other in alike if place == at),
        most=traits.max_messages,
    )


def _found(path: str, messages: Sequence[Any]) -> tuple[int, Mapping[str, Any]]:
    """The index of the message at a path, and the block there, empty where there is none."""
    match path.split("."):
        case ["messages", message, "content", block, *_]:
            return int(message), messages[int(message)]["content"][int(block)]
        case ["messages", message, *_]:
            return int(message), {}
        case _:
            return 0, {}


def _call_id(block: Mapping[str, Any]) -> str:
    return str(block.get("tool_use_id", block.get("id", "")))


def _before(messages: Sequence[Any], index: int) -> int:
    """The index of the last assistant message before one."""
    earlier = range(index - 1, -1, -1)
    return next((n for n in earlier if messages[n].get("role") == "assistant"), 0)


# ── counting and billing ─────────────────────────────────────────────────────


def tokens_of(body: Body) -> int:
    """Tokens of a request: its characters, tools and system included, at a fixed price."""
    return sum(tokens_in(unit) for unit in units(body))


def tokens_in(value: object) -> int:
    """Tokens of a JSON value; media has a flat price."""
    characters, media = _size(value)
    return round(characters / CHARACTERS_PER_TOKEN) + media * MEDIA_TOKENS


def _size(value: object) -> tuple[int, int]:
    """Characters of all names and plain values, and the number of base64 sources."""
    match value:
        case {"type": "base64"}:
            return 0, 1
        case dict():
            sizes = [_size(item) for name, item in value.items() if name != "cache_control"]
            names = CHARACTERS_PER_FIELD * len(sizes)
            return names + sum(size[0] for size in sizes), sum(size[1] for size in sizes)
        case list() | tuple():
            sizes = [_size(item) for item in value]
            return sum(size[0] for size in sizes), sum(size[1] for size in sizes)
        case _:
            return len(str(value)), 0


def units(body: Body) -> list[object]:
    """The prompt in the order in which it is cached: tools, system, messages."""
    system = body.get("system") or []
    parts = [{"type": "text", "text": system}] if isinstance(system, str) else system
    return [*(body.get("tools") or ()), *parts, *body["messages"]]


@dataclass
class PromptCache:
    """Prefixes that were written: what a later prompt that begins with one reads."""

    written: set[str] = field(default_factory=set)

    def bill(self, body: Body) -> dict[str, int]:
        """The input side of a usage report; the prefix up to the last mark is kept."""
        prompt = units(body)
        marks = [n for n, unit in enumerate(prompt, 1) if _is_marked(unit)]
        last = len(prompt) if "cache_control" in body else max(marks, default=0)
        digests = list(_prefixes(prompt[:last]))
        read = max((n for n, digest in enumerate(digests, 1) if digest in self.written), default=0)
        self.written.update(digests[n - 1] for n in {*marks, last} if n)
        cost = [tokens_in(unit) for unit in prompt]
        return {
            "input_tokens": sum(cost[last:]),
            "cache_creation_input_tokens": sum(cost[read:last]),
            "cache_read_input_tokens": sum(cost[:read]),
        }


def _is_marked(unit: object) -> bool:
    match unit:
        case {"cache_control": dict()}:
            return True
        case {"content": list(blocks)}:
            return any(_is_marked(block) for block in blocks)
        case _:
            return False


def _prefixes(prompt: Sequence[object]) -> Iterator[str]:
    """A digest of each prefix, from the first unit alone to the whole prompt; marks don't count."""
    digest = sha256()
    for unit in prompt:
        digest.update(json.dumps(_unmarked(unit), sort_keys=True).encode())
        yield digest.copy().hexdigest()


def _unmarked(value: object) -> object:
    match value:
        case dict():
            return {k: _unmarked(v) for k, v in value.items() if k != "cache_control"}
        case list():
            return [_unmarked(item) for item in value]
        case _:
            return value


# ── streaming ────────────────────────────────────────────────────────────────

Event = tuple[str, Json]
"""The name of an event and its data."""


def stream(message: Mapping[str, Any]) -> Iterator[Event]:
    """The events of a response, as the API streams it."""
    usage = message["usage"]
    begun = {"content": [], "stop_reason": None, "usage": usage | {"output_tokens": 1}}
    yield "message_start", {"message": {**message, **begun}}
    for index, block in enumerate(message["content"]):
        yield "content_block_start", {"index": index, "content_block": _opened(block)}
        yield "ping", {}
        for delta in _deltas(block):
            yield "content_block_delta", {"index": index, "delta": delta}
        yield "content_block_stop", {"index": index}
    stop = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield "message_delta", {"delta": stop, "usage": {"output_tokens": usage["output_tokens"]}}
    yield "message_stop", {}


def broken(message: Mapping[str, Any]) -> Iterator[Event]:
    """A stream that ends in an error after its first event."""
    yield next(stream(message))
    yield "error", {"error": {"type": "overloaded_error", "message": "Overloaded"}}


def _opened(block: Mapping[str, Any]) -> dict[str, Any]:
    empty = {"text": "", "thinking": "", "signature": "", "input": {}}
    return {name: empty.get(name, value) for name, value in block.items()}


def _deltas(block: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    match block["type"]:
        case "text":
            yield from ({"type": "text_delta", "text": part} for part in _cut(block["text"]))
        case "thinking":
            for part in _cut(block["thinking"]):
                yield {"type": "thinking_delta", "thinking": part}
            yield {"type": "signature_delta", "signature": block["signature"]}
        case _:
            for part in _cut(json.dumps(block["input"])):
                yield {"type": "input_json_delta", "partial_json": part}


def _cut(text: str) -> Iterator[str]:
    for start in range(0, len(text), CHUNK_CHARACTERS):
        yield text[start : start + CHUNK_CHARACTERS]


def server_sent(events: Iterable[Event]) -> Iterator[str]:
    """Events as lines of `text/event-stream`."""
    for kind, data in events:
        yield f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n"
