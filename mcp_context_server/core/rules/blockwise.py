"""Repair of what is wrong with single blocks, and of messages left without any."""

import json
from collections.abc import Iterator

from mcp_context_server.core.messages import Block, is_result, result_text
from mcp_context_server.core.rules.blocks import SERVER_CALL, check_blocks, fits
from mcp_context_server.core.rules.breakpoints import check_breakpoints
from mcp_context_server.core.rules.compaction import check_compaction_blocks
from mcp_context_server.core.rules.draft import PLACEHOLDER, Draft, Repair, Slot
from mcp_context_server.core.rules.index import OWN_FIELDS
from mcp_context_server.core.rules.media import check_citations, check_media, true_format
from mcp_context_server.core.rules.mending import Mends, drop, mended, text_block, without
from mcp_context_server.core.rules.naming import Names
from mcp_context_server.core.rules.request import list_of, object_of, text_of
from mcp_context_server.core.rules.thinking import check_sealed_parts
from mcp_context_server.core.rules.tools import check_references
from mcp_context_server.core.tokens.images import image_size


def mend_blocks(draft: Draft) -> Draft:
    """Blocks that are wrong by themselves, mended or left out."""
    for checks, mends in PASSES:
        draft = mended(draft, checks, mends)
    return _fit_names(_retype_server_calls(draft))


def fill_empty_messages(draft: Draft) -> Draft:
    """A placeholder where a message says nothing, but for a last reply."""
    slots, repairs = list[Slot](), list[Repair]()
    for number, slot in enumerate(draft.slots):
        last_reply = number == len(draft.slots) - 1 and slot.message.role == "assistant"
        if slot.message.content in ("", ()) and not last_reply:
            repairs.append(slot.repaired("R17", "Put a placeholder in an empty message."))
            slot = slot.with_(content=(PLACEHOLDER,))
        slots.append(slot)
    return draft.then(slots, repairs) if repairs else draft


# ── what becomes of a block ──────────────────────────────────────────────────


def _readable(block: object, inside: str) -> Block | None:
    """Text where a string stands for a block, and a result's content as text."""
    if isinstance(block, str) and block.strip():
        return text_block(block)
    fields = dict(object_of(block))
    if fields.get("type") != "tool_result" or not is_result(fields):
        return None
    content = fields.get("content")
    if not isinstance(content, str | list | tuple):
        fields["content"] = "" if content is None else _as_json(content)
    return fields


def _as_json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return "[unreadable content]"


def _wrapped_input(block: Block, inside: str) -> Block:
    given = block.get("input")
    return {**block, "input": {} if given in (None, "") else {"value": given}}


def _medium_marker(block: Block, inside: str) -> Block:
    size = image_size(block) if block["type"] == "image" else None
    of = f" of {size[0]}x{size[1]} pixels" if size else ""
    return text_block(f"[{block['type']}{of} removed]")


def _true_format(block: Block, inside: str) -> Block:
    true = true_format(block)
    if true is None:
        return _medium_marker(block, inside)
    return {**block, "source": {**block["source"], "media_type": true}}


def _reference_marker(block: Block, inside: str) -> Block:
    if block["type"] == "tool_reference":
        return text_block(f"[tool {text_of(block.get('tool_name'))!r} is not available]")
    at = int(inside.rpartition(".")[2])
    content = object_of(block["content"])
    kept = [*list_of(content["tool_references"])]
    return {**block, "content": {**content, "tool_references": [*kept[:at], *kept[at + 1 :]]}}


def _not_cited(block: Block, inside: str) -> Block:
    """Search results as text where they stand among other things; else without citations."""
    if block["type"] != "tool_result":
        return {name: value for name, value in block.items() if name != "citations"}
    inner = (_search_text(item) for item in list_of(block.get("content")))
    return {**block, "content": list(inner)}


def _search_text(item: object) -> object:
    found = object_of(item)
    if found.get("type") != "search_result":
        return item
    parts = (text_of(found.get("title")), text_of(found.get("source")), result_text(found))
    return text_block("\n".join(part for part in parts if part) or "[search result]")


def _compacted_as_text(block: Block, inside: str) -> Block | None:
    text = text_of(block.get("content"))
    return text_block(text) if text.strip() else None


_PLAIN: Mends = {
    "R0": (_readable, "Made text of what is not a content block, or removed it."),
    "R1": (drop, "Removed a call that is not the assistant's."),
    "R7": (_wrapped_input, "Wrapped the input of a call in an object."),
    "R15": (drop, "Removed an empty text block."),
    "R16": (drop, "Removed a text block of nothing but whitespace."),
    "R21": (without(*OWN_FIELDS), "Removed fields that the API does not know."),
    "R23": (without("citations"), "Removed the citations of a user's text."),
    "R29": (drop, "Removed thinking without its signature."),
}

_REFERRING: Mends = {
    "R49": (_reference_marker, "Replaced a reference to a tool that is not defined."),
    "R51": (drop, "Removed a change to a tool that is not defined."),
}

_SEALED: Mends = {
    "R42": (drop, "Removed a block whose encrypted parts were changed."),
    "R61": (_compacted_as_text, "Made a compaction block that can't be sent plain text."),
}

_MEDIA: Mends = {
    "R22": (_medium_marker, "Replaced a document in an assistant message by a marker."),
    "R52": (_medium_marker, "Replaced an image of too many bytes by a marker."),
    "R53": (_medium_marker, "Replaced an image of too many pixels by a marker."),
    "R56": (_medium_marker, "Replaced a PDF of too many pages by a marker."),
    "R57": (_true_format, "Set an image's media type to what its bytes are."),
}

_TOO_MANY: Mends = {"R55": (_medium_marker, "Replaced one of too many media by a marker.")}

_TOO_LARGE: Mends = {"R54": (_medium_marker, "Replaced an image too large among so many.")}

_CITING: Mends = {"R58": (_not_cited, "Made citations alike.")}

_MARKED: Mends = {
    rule: (without("cache_control"), "Removed a cache mark from what can't be cached.")
    for rule in ("R33", "R48")
}

PASSES = (
    ((check_blocks,), _PLAIN),
    ((check_sealed_parts, check_compaction_blocks), _SEALED),
    ((check_references,), _REFERRING),
    ((check_media,), _MEDIA),
    ((check_media,), _TOO_MANY),
    ((check_media,), _TOO_LARGE),
    ((check_citations,), _CITING),
    ((check_breakpoints,), _MARKED),
)
"""Which checks are asked, one after another, and how their faults are mended."""


def _fit_names(draft: Draft) -> Draft:
    """Names of tools as the API allows them: one and the same new name for the same old one."""
    most = draft.terms.traits.max_name_chars
    names = [block.get("name") for block in _client_calls(draft)]
    fit = {name for name in names if isinstance(name, str) and fits(name, most)}
    new, made = Names(fit, most), dict[str, str]()
    slots, repairs = list[Slot](), list[Repair]()
    for slot in draft.slots:
        blocks = list[Block]()
        for block in slot.blocks:
            name = block.get("name")
            if block.get("type") == "tool_use" and not (isinstance(name, str) and name in fit):
                old = name if isinstance(name, str) else ""
                made[old] = made.get(old) or new.new(old)
                block = {**block, "name": made[old]}
                repairs.append(slot.repaired("R8", f"Renamed the tool {old!r} to {made[old]!r}."))
            blocks.append(block)
        slots.append(slot.holding(blocks))
    return draft.then(slots, repairs) if repairs else draft


def _client_calls(draft: Draft) -> Iterator[Block]:
    for slot in draft.slots:
        for block in slot.blocks:
            if block.get("type") == "tool_use":
                yield block


def _retype_server_calls(draft: Draft) -> Draft:
    """Server-side calls that came in as client ones, given their own type again."""
    slots, repairs = list[Slot](), list[Repair]()
    for slot in draft.slots:
        answered = {
            block["tool_use_id"]
            for block in slot.blocks
            if is_result(block) and block["type"] != "tool_result"
        }
        blocks = [
            {**block, "type": "server_tool_use"} if _is_disguised(block, answered) else block
            for block in slot.blocks
        ]
        made = slot.holding(blocks)
        if made is not slot:
            repairs.append(slot.repaired("R40", "Gave a server-side call its type."))
        slots.append(made)
    return draft.then(slots, repairs) if repairs else draft


def _is_disguised(block: Block, answered: set[str]) -> bool:
    id = block.get("id")
    server = isinstance(id, str) and id.startswith(SERVER_CALL) and id in answered
    return block.get("type") == "tool_use" and server
