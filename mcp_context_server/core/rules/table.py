"""The Messages API's rules, and the check of a request against all of them."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from mcp_context_server.core.rules.blocks import check_blocks
from mcp_context_server.core.rules.index import index
from mcp_context_server.core.rules.order import (
    check_order,
    check_system_messages,
    check_thinking_place,
)
from mcp_context_server.core.rules.originals import Originals
from mcp_context_server.core.rules.pairing import check_pairs, check_server_pairs
from mcp_context_server.core.rules.request import Fault, ModelTraits, Request, Terms

RULES: Mapping[str, str] = {
    "R0": "Messages, content and blocks have the shape the API reads.",
    "R1": "Every call in an assistant message has its result in the next message.",
    "R2": "All results of one assistant message stand in that one user message.",
    "R3": "Results come first in a message.",
    "R4": "Every result answers a call of the assistant message before it.",
    "R5": "Call ids are unique in the request.",
    "R6": "A call has one result.",
    "R7": "A call's input is an object.",
    "R8": "Tool names and call ids are letters, digits, `_` and `-`.",
    "R13": "The first message is a user's, or opens with a compaction block.",
    "R14": "Roles alternate, where the backend does not join messages itself.",
    "R15": "No text block is empty.",
    "R16": "No text block is only whitespace.",
    "R17": "No message is empty, except a last assistant message.",
    "R18": "A reply left for the model to go on with does not end in whitespace.",
    "R19": "The last message is not an assistant's on models that take no prefill.",
    "R20": "A request holds a limited number of messages.",
    "R21": "A message has only fields that the API knows.",
    "R23": "Only an assistant's text has citations.",
    "R28": "Thinking stands in assistant messages, and never last.",
    "R38": "A server-side call has its result after it, in the assistant's content.",
    "R39": "A server-side result has its call before it.",
    "R40": "Ids of server-side calls never stand in client-side calls and results.",
    "R41": "While a server-side call is pending, a user message holds only results.",
    "R43": "Calls and results of an MCP connector pair like server-side ones.",
    "R59": "System messages stand in the conversation only where the model takes them.",
    "R60": "A system message follows a user message and precedes the reply.",
}
"""Each rule in a sentence, by the id that faults carry."""

CHECKS: tuple[Callable[[Request], Iterable[Fault]], ...] = (
    check_blocks,
    check_pairs,
    check_server_pairs,
    check_order,
    check_system_messages,
    check_thinking_place,
)


def validate(
    messages: object,
    *,
    request: Mapping[str, Any] | None = None,
    betas: Collection[str] | None = None,
    traits: ModelTraits | None = None,
    originals: Originals | None = None,
    open_tail: bool = False,
) -> tuple[Fault, ...]:
    """The rules that a request breaks, in the order of the conversation; never raises.

    `messages` are wire messages. `request` is the rest of the request's JSON (`system`,
    `tools`, `thinking`, …); without it only the messages are judged. `betas` are the
    beta headers. `originals` tell what was received, for the rules about unaltered
    blocks. `open_tail` allows what a stored conversation may have and a request may not:
    a last response whose calls wait for their results, and an assistant message at the end.
    """
    terms = Terms(
        traits=traits or ModelTraits(),
        body=request,
        betas=betas,
        originals=originals,
        open_tail=open_tail,
    )
    return faults_of(index(messages, terms), CHECKS)


def faults_of(
    request: Request, checks: Iterable[Callable[[Request], Iterable[Fault]]]
) -> tuple[Fault, ...]:
    """What these checks find, in the order of the conversation."""
    found = [*request.malformed, *(fault for check in checks for fault in check(request))]
    return tuple(sorted(found, key=_place))


def _place(fault: Fault) -> list[tuple[bool, int, str]]:
    """Sorts paths as they are read: by number where they have numbers."""
    steps = fault.path.split(".")
    return [(s.isdecimal(), int(s) if s.isdecimal() else 0, s) for s in steps]
