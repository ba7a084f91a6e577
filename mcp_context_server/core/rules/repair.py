"""Making a broken conversation legal, with as little change as the rules allow."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from mcp_context_server.core.messages import Message, Messages
from mcp_context_server.core.rules.blockwise import fill_empty_messages, mend_blocks
from mcp_context_server.core.rules.draft import Draft, Repair, Slot, Step
from mcp_context_server.core.rules.finishing import (
    drop_unfit_thinking,
    end_after_thinking,
    fit_special_results,
    limit_breakpoints,
)
from mcp_context_server.core.rules.identifying import identify_calls
from mcp_context_server.core.rules.ordering import (
    alternate_roles,
    end_with_the_user,
    place_system_messages,
    start_with_a_user,
    strip_the_last_reply,
)
from mcp_context_server.core.rules.originals import Originals
from mcp_context_server.core.rules.rejoining import join_chunks, pair_results
from mcp_context_server.core.rules.request import ModelTraits, Terms
from mcp_context_server.core.rules.serverside import pair_server_blocks
from mcp_context_server.core.rules.table import CHECKS, faults_of

STEPS: tuple[Step, ...] = (
    identify_calls,  # by their order, where they have no ids
    mend_blocks,  # what is wrong with one block alone
    place_system_messages,  # they may stand between calls and results
    join_chunks,  # of one response, where they need each other
    pair_results,  # one for each call, in the next message, first
    fit_special_results,
    end_with_the_user,  # which ends the wait for server-side calls
    pair_server_blocks,
    end_after_thinking,  # what stood behind it may have gone
    place_system_messages,  # again: what stood before them may have gone
    alternate_roles,
    start_with_a_user,
    fill_empty_messages,  # whatever the steps before have emptied
    drop_unfit_thinking,  # now that nothing before it changes any more
    strip_the_last_reply,
    fill_empty_messages,  # again: with its thinking a message may have lost all
    limit_breakpoints,
)
"""The order in which a conversation is repaired."""


def repair(
    messages: Sequence[Message],
    *,
    request: Mapping[str, Any] | None = None,
    betas: Collection[str] | None = None,
    traits: ModelTraits | None = None,
    originals: Originals | None = None,
    open_tail: bool = False,
    earlier_calls: Collection[str] | None = None,
    stamp: str = "",
) -> tuple[Messages, tuple[Repair, ...]]:
    """The conversation made legal, and what was changed; the options are those of `validate`, and
    `earlier_calls`, which tells that something legal stands before the first message, and
    the ids that calls there have taken, and `stamp`, with which the names made here end.

    The result breaks no rule that messages can break (rules about tools, system and
    parameters are the caller's to mend). A legal conversation comes back as the same
    object, and messages and blocks that nothing is wrong with are the same objects too.

    Ids are kept. Where messages are joined, the first one's id stands for all, and
    `merged_ids` of the joined message names the others. A message that had to be
    added takes its neighbour's id with `:before` or `:after`, when that has one.
    """
    terms = Terms(
        traits=traits or ModelTraits(),
        body=request,
        betas=betas,
        originals=originals,
        open_tail=open_tail,
        earlier_calls=earlier_calls,
        stamp=stamp,
    )
    draft = Draft(tuple(Slot(at, message) for at, message in enumerate(messages)), terms)
    if not faults_of(draft.request, CHECKS):
        return (messages if isinstance(messages, tuple) else tuple(messages)), ()
    for step in STEPS:
        draft = step(draft)
    return draft.messages, draft.repairs
