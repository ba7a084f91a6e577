"""A view and its figures after an edit, worked out from what left it and what came."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mcp_context_server.core.edits import (
    DropThinking,
    Edit,
    Replace,
    apply,
    exchanged,
    with_exchanged,
)
from mcp_context_server.core.ledger import Ledger
from mcp_context_server.core.messages import Message, Messages
from mcp_context_server.core.session.results import Contributor, largest_results
from mcp_context_server.core.session.state import Session
from mcp_context_server.core.tokens.estimates import Tally, has_media, tally_messages
from mcp_context_server.core.tokens.images import Media, media_of


@dataclass(frozen=True, slots=True)
class Exchange:
    """A view and its ledger after an edit, and which messages left it and came into it."""

    view: Messages
    ledger: Ledger
    gone: Sequence[Message]
    came: Sequence[Message]


def in_place(session: Session, edit: Replace | DropThinking) -> Exchange | None:
    """The change of an edit that leaves each message where it is; only what it names is read."""
    old = session.view
    fresh = exchanged(old, edit, session.ledger.places)
    if not fresh:
        return None
    view = with_exchanged(old, fresh)
    ledger = session.ledger.exchanged_at(fresh, view, session.family)
    return Exchange(view, ledger, [old[place] for place in fresh], list(fresh.values()))


def moved(session: Session, edit: Edit) -> Exchange | None:
    """The change of an edit that exchanges a range; messages that stay are the same objects."""
    before, after = session.view, apply(session.view, edit, session.ledger.places)
    if after is before:
        return None
    kept, had = set(map(id, after)), set(map(id, before))
    gone = [message for message in before if id(message) not in kept]
    came = [message for message in after if id(message) not in had]
    return Exchange(after, session.ledger.exchanged(before, after, session.family), gone, came)


def counted(session: Session, change: Exchange) -> tuple[Tally, Media]:
    """The tally and the media after an exchange, by what left the view and what came."""
    family, gone, came = session.family, change.gone, change.came
    lost, added = tally_messages(gone, family), tally_messages(came, family)
    is_most = len(gone) + len(came) >= len(change.view)
    tally = tally_messages(change.view, family) if is_most else session.tally - lost + added
    media = session.media
    if lost.image or lost.document:
        media = media - media_in(gone, family)
    if added.image or added.document:
        media = media + media_in(came, family)
    return tally, media


def largest_after(session: Session, edit: Edit, change: Exchange) -> tuple[Contributor, ...]:
    """The largest results after an edit; where it only made others smaller, they are the same."""
    if isinstance(edit, DropThinking):
        return session.largest
    if isinstance(edit, Replace):
        changed = {message.id for message in change.gone}
        if not any(each.message_id in changed for each in session.largest):
            return session.largest
    return largest_results(change.view, change.ledger, session.family, session.policy.largest_count)


def media_in(messages: Iterable[Message], family: str) -> Media:
    return sum((media_of(m) for m in messages if has_media(m, family)), Media())
