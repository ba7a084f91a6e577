"""Media: old images and documents give way to markers before a request holds too many.

Tokens are not the only limit: a request may hold so many of them and so many bytes,
however empty the window is. Once a limit is passed, only the newest stay.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mcp_context_server.core.edits import Change, Replace
from mcp_context_server.core.messages import Block, Message, is_result, nested_blocks
from mcp_context_server.core.stages.clearing import argument_of, unseen_from
from mcp_context_server.core.stages.turn import Step, Turn
from mcp_context_server.core.tokens.estimates import block_tokens, has_media
from mcp_context_server.core.tokens.images import (
    base64_data,
    image_size,
    is_image,
    is_media,
    pdf_pages,
)


def drop_old_media(turn: Turn) -> Step | None:
    """The stage: markers for all but the newest images and documents, past a limit."""
    if not _is_over(turn, turn.session.media.count, turn.session.media.chars):
        return None
    changes = tuple(_changes(turn))
    return Step((Replace(at=turn.at, stage="media", changes=changes),)) if changes else None


def _is_over(turn: Turn, count: int, chars: int) -> bool:
    policy = turn.policy
    most = min(policy.media_limit, turn.model.max_media)
    return count > most or chars > policy.media_limit_chars


@dataclass(slots=True)
class _Budget:
    """What may still stay, while the view is walked from its end."""

    turn: Turn
    count: int = 0
    chars: int = 0

    def keeps(self, block: Block, *, is_unseen: bool) -> bool:
        count, chars = self.count + 1, self.chars + len(base64_data(block))
        if is_unseen:
            fits = not _is_over(self.turn, count, chars)
        else:
            policy = self.turn.policy
            fits = count <= policy.media_kept and chars <= policy.media_kept_chars
        if fits:
            self.count, self.chars = count, chars
        return fits


def _changes(turn: Turn) -> Iterator[Change]:
    """Changes from the newest message to the oldest; only user messages can be changed."""
    budget, unseen = _Budget(turn), unseen_from(turn.view)
    callers = {result.id: result for result in turn.ledger.results_in()}
    for index in range(len(turn.view) - 1, -1, -1):
        message = turn.view[index]
        if message.role != "user" or not has_media(message, turn.session.family):
            continue
        is_unseen = index >= unseen

        def keeps(block: Block, is_unseen: bool = is_unseen) -> bool:
            return budget.keeps(block, is_unseen=is_unseen)

        for place in range(len(message.blocks) - 1, -1, -1):
            block = message.blocks[place]
            if is_media(block) and not keeps(block):
                yield _change(turn, message, place, marker(block, message.id))
            elif block.get("type") == "tool_result" and is_result(block):
                caller = callers.get(block["tool_use_id"])
                about = argument_of(caller.arguments, 60) if caller else ""
                if exchanged := _without_media(block, keeps, about):
                    yield _change(turn, message, place, exchanged)


def _without_media(block: Block, keeps: Callable[[Block], bool], about: str) -> Block | None:
    """The result with markers for the media that do not stay; None where all of them do."""
    inner, changed = list(nested_blocks(block)), False
    for place in range(len(inner) - 1, -1, -1):
        if is_media(inner[place]) and not keeps(inner[place]):
            inner[place] = marker(inner[place], block["tool_use_id"], about)
            changed = True
    return {**block, "content": inner} if changed else None


def _change(turn: Turn, message: Message, place: int, block: Block) -> Change:
    old, family = message.blocks[place], turn.session.family
    freed = block_tokens(old, message.role, family) - block_tokens(block, message.role, family)
    id = old["tool_use_id"] if is_result(old) else None
    return Change(
        message_id=message.id,
        tool_use_id=id,
        index=place,
        block=block,
        reference=id or message.id,
        tokens_freed=round(turn.session.calibration.factor * freed),
    )


def marker(block: Block, reference: str, about: str = "") -> Block:
    """The text that stands where an image or a document was."""
    if is_image(block):
        size = image_size(block)
        what = f"image {size[0]}x{size[1]}" if size else "image"
    else:
        pages = pdf_pages(block)
        what = f"document of {pages} pages" if pages else "document"
    length = f", {len(base64_data(block)):,} base64 characters" if base64_data(block) else ""
    text = f'[{what}{about}{length}; left out, recall with reference "{reference}"]'
    return {"type": "text", "text": text}
