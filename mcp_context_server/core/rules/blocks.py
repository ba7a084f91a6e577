"""Rules about one block alone, by its type.

A check looks at a block, the role of who says it and the model's traits, and yields
the rules that are broken, each with what is wrong and what to do.
"""

from collections.abc import Callable, Iterator, Mapping

from mcp_context_server.core.messages import Block
from mcp_context_server.core.rules.index import LISTS, OWN_FIELDS
from mcp_context_server.core.rules.naming import is_identifier
from mcp_context_server.core.rules.request import Fault, ModelTraits, Request

Broken = tuple[str, str]
Check = Callable[[Block, str, ModelTraits], Iterator[Broken]]

TEXT_OR_LIST = (str, *LISTS)

SERVER_CALL = "srvtoolu_"
"""How the API's own call ids begin."""


def check_blocks(request: Request) -> Iterator[Fault]:
    """Every block against the rules of its type."""
    traits = request.terms.traits
    for checks, sites in ((BLOCK_CHECKS, request.sites), (NESTED_CHECKS, request.nested)):
        for kind, check in checks.items():
            for site in sites.get(kind, ()):
                _, _, role, block = site
                for rule, what in check(block, role, traits):
                    yield Fault(rule, site.path, what)


def fits(name: str, most_chars: int) -> bool:
    """Whether a tool may have this name."""
    return len(name) <= most_chars and is_identifier(name)


def _text(block: Block, role: str, traits: ModelTraits) -> Iterator[Broken]:
    text = block.get("text")
    if not isinstance(text, str):
        yield "R0", "`text` must be a string: give one or remove the block"
    elif not text:
        yield "R15", "is empty: remove the block"
    elif text.isspace():
        yield "R16", "is nothing but whitespace: remove the block"
    if len(block) > 2:
        if role != "assistant" and block.get("citations"):
            yield "R23", "only an assistant's text may have citations: remove the field"
        if not OWN_FIELDS.isdisjoint(block):
            yield _foreign(block)


def _inner_text(block: Block, role: str, traits: ModelTraits) -> Iterator[Broken]:
    """Blank text inside a result is taken; empty text is not."""
    return (broken for broken in _text(block, role, traits) if broken[0] != "R16")


def _call(block: Block, role: str, traits: ModelTraits) -> Iterator[Broken]:
    id, name = block.get("id"), block.get("name")
    if role != "assistant" and role:
        yield "R1", "only an assistant message may hold calls: move or remove it"
    if not isinstance(id, str):
        yield "R0", "`id` must be a string: give one or remove the block"
    elif not is_identifier(id):
        yield "R8", "`id` must be letters, digits, `_` or `-`: rename it, in its result too"
    elif id.startswith(SERVER_CALL):
        yield "R40", f"a `{SERVER_CALL}…` id belongs to a `server_tool_use` block"
    if not (isinstance(name, str) and fits(name, traits.max_name_chars)):
        most = traits.max_name_chars
        yield "R8", f"`name` must be 1 to {most} letters, digits, `_` or `-`: rename the tool"
    if not isinstance(block.get("input"), dict):
        yield "R7", "`input` is not an object: wrap it in one"
    if not OWN_FIELDS.isdisjoint(block):
        yield _foreign(block)


def _server_call(block: Block, role: str, traits: ModelTraits) -> Iterator[Broken]:
    if not isinstance(block.get("id"), str):
        yield "R0", "`id` must be a string: give one or remove the block"
    if not isinstance(block.get("input"), dict):
        yield "R7", "`input` is not an object: wrap it in one"


def _result(block: Block, role: str, traits: ModelTraits) -> Iterator[Broken]:
    id = block.get("tool_use_id")
    if role != "user" and role:
        yield "R4", "only a user message may hold results: move or remove it"
    if not isinstance(id, str):
        yield "R0", "`tool_use_id` must be a string: give one or remove the block"
    elif id.startswith(SERVER_CALL):
        yield "R40", "the API answers its own calls: remove this result"
    if not isinstance(block.get("content", ""), TEXT_OR_LIST):
        yield CONTENT_OF_RESULT
    if not OWN_FIELDS.isdisjoint(block):
        yield _foreign(block)


CONTENT_OF_RESULT = "R0", "`content` is neither text nor a list of blocks: make it text"


def _thinking(block: Block, role: str, traits: ModelTraits) -> Iterator[Broken]:
    if not isinstance(block.get("thinking"), str):
        yield "R0", "`thinking` must be a string: remove the block"
    elif not (isinstance(block.get("signature"), str) and block["signature"]):
        yield "R29", "the thinking has no signature: remove it"


def _redacted(block: Block, role: str, traits: ModelTraits) -> Iterator[Broken]:
    if not isinstance(block.get("data"), str):
        yield "R0", "`data` must be a string: remove the block"


def _media(block: Block, role: str, traits: ModelTraits) -> Iterator[Broken]:
    if not isinstance(block.get("source"), dict):
        yield "R0", "`source` must be an object: give one or remove the block"


def _foreign(block: Block) -> Broken:
    ours = ", ".join(sorted(OWN_FIELDS.intersection(block)))
    return "R21", f"the API does not know {ours}: leave it out"


BLOCK_CHECKS: Mapping[str, Check] = {
    "text": _text,
    "tool_use": _call,
    "server_tool_use": _server_call,
    "mcp_tool_use": _server_call,
    "tool_result": _result,
    "thinking": _thinking,
    "redacted_thinking": _redacted,
    "image": _media,
    "document": _media,
}
"""By the type of a block that stands directly in a message."""

NESTED_CHECKS: Mapping[str, Check] = {"text": _inner_text, "image": _media, "document": _media}
"""By the type of a block that stands in another block's content."""
