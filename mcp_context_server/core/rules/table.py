"""The Messages API's rules, and the check of a request against all of them."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from mcp_context_server.core.rules.blocks import check_blocks
from mcp_context_server.core.rules.breakpoints import check_breakpoints
from mcp_context_server.core.rules.compaction import (
    check_compaction_blocks,
    check_compaction_request,
    check_edits,
    check_sampling,
)
from mcp_context_server.core.rules.index import index
from mcp_context_server.core.rules.media import check_citations, check_media
from mcp_context_server.core.rules.order import check_order, check_system_messages
from mcp_context_server.core.rules.originals import Originals
from mcp_context_server.core.rules.pairing import check_pairs, check_server_pairs
from mcp_context_server.core.rules.request import Fault, ModelTraits, Request, Terms, object_of
from mcp_context_server.core.rules.thinking import (
    check_sealed_parts,
    check_thinking_is_unaltered,
    check_thinking_of_the_turn,
    check_thinking_parameters,
    check_thinking_place,
)
from mcp_context_server.core.rules.tools import (
    check_container,
    check_references,
    check_special_results,
    check_tools,
)

RULES: Mapping[str, str] = {
    "R0": "Messages, content and blocks have the shape the API reads.",
    # ── calls and results ──
    "R1": "Every call in an assistant message has its result in the next message.",
    "R2": "All results of one assistant message stand in that one user message.",
    "R3": "Results come first in a message.",
    "R4": "Every result answers a call of the assistant message before it.",
    "R5": "Call ids are unique in the request.",
    "R6": "A call has one result.",
    "R7": "A call's input is an object.",
    "R8": "Tool names and call ids are letters, digits, `_` and `-`.",
    "R9": "A conversation with tool blocks needs tools, on some backends.",
    "R10": "Schemas of tools are JSON Schema.",
    "R11": "Results of toolset members name the toolset and hold only text and images.",
    "R12": "Calls made by code are answered with text, and with the container named.",
    # ── roles and content ──
    "R13": "The first message is a user's, or opens with a compaction block.",
    "R14": "Roles alternate, where the backend does not join messages itself.",
    "R15": "No text block is empty.",
    "R16": "No text block is only whitespace.",
    "R17": "No message is empty, except a last assistant message.",
    "R18": "A reply left for the model to go on with does not end in whitespace.",
    "R19": "The last message is not an assistant's on models that take no prefill.",
    "R20": "A request holds a limited number of messages.",
    "R21": "Messages and blocks have only fields that the API knows.",
    "R22": "No document stands directly in an assistant message.",
    "R23": "Only an assistant's text has citations.",
    "R24": "Sampling parameters are gone.",
    # ── thinking ──
    "R25": "Thinking in the latest reply is unaltered and whole.",
    "R26": "With manual thinking the running turn starts with thinking.",
    "R27": "With thinking off a last reply holds none.",
    "R28": "Thinking stands in assistant messages, and never last.",
    "R29": "Thinking bears the signature it came with.",
    "R30": "Bound thinking has before it exactly the conversation it was made in.",
    "R31": "Bound thinking is kept in an unbroken run.",
    "R32": "Block binding is asked for with its beta header.",
    "R33": "Thinking carries no cache mark.",
    "R34": "The type of thinking is one that the model takes.",
    "R35": "The thinking budget is large enough, and within the output.",
    "R36": "No tool is forced with manual thinking.",
    "R37": "Context edits suit the model and its headers; clearing of thinking comes first.",
    # ── server-side tools ──
    "R38": "A server-side call has its result after it, in the assistant's content.",
    "R39": "A server-side result has its call before it.",
    "R40": "Ids of server-side calls never stand in client-side calls and results.",
    "R41": "While a server-side call is pending, a user message holds only results.",
    "R42": "Encrypted parts come back as they were received.",
    "R43": "Calls and results of an MCP connector pair like server-side ones.",
    "R44": "A fallback block keeps its place between thinking.",
    # ── cache marks ──
    "R45": "A request has at most four breakpoints.",
    "R46": "Long breakpoints come before short ones.",
    "R47": "The automatic breakpoint agrees with the one of its block.",
    "R48": "Breakpoints stand on what can be cached.",
    # ── tools in the conversation ──
    "R49": "Every tool reference names a tool of the request.",
    "R50": "Not all tools are deferred.",
    "R51": "Tools have names of their own, are not too many, and additions are declared.",
    # ── media and citations ──
    "R52": "Images are small enough in bytes.",
    "R53": "Images are small enough in pixels.",
    "R54": "Images in a request of many are smaller still.",
    "R55": "A request holds a limited number of images and documents.",
    "R56": "PDFs have a limited number of pages.",
    "R57": "Images are of a known format, and of the one they say.",
    "R58": "Citations are on for all or for none, and search results keep to themselves.",
    # ── system messages and compaction ──
    "R59": "System messages stand in the conversation only where the model takes them.",
    "R60": "A system message follows a user message and precedes the reply.",
    "R61": "A compaction block opens the messages, alone and as it was received.",
    "R62": "A request for compaction has something to summarise, and asks nothing else.",
}
"""Each rule in a sentence, by the id that faults carry."""

CHECKS: tuple[Callable[[Request], Iterable[Fault]], ...] = (
    check_blocks,
    check_pairs,
    check_server_pairs,
    check_order,
    check_system_messages,
    check_thinking_place,
    check_thinking_of_the_turn,
    check_thinking_is_unaltered,
    check_thinking_parameters,
    check_sealed_parts,
    check_breakpoints,
    check_tools,
    check_references,
    check_special_results,
    check_container,
    check_media,
    check_citations,
    check_sampling,
    check_edits,
    check_compaction_blocks,
    check_compaction_request,
)
"""Groups of rules that look at the same things."""


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
        body=None if request is None else object_of(request),
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
