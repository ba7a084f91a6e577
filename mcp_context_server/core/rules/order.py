"""Rules about the order of messages, and about what each must hold."""

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from mcp_context_server.core.messages import is_call
from mcp_context_server.core.rules.request import Fault, Request, Turned


def check_order(request: Request) -> Iterator[Fault]:
    """Who speaks first, in turn and last; and that each says something."""
    messages, most = request.messages, request.terms.traits.max_messages
    if len(messages) > most:
        what = f"{len(messages)} messages are more than {most}: compact them"
        yield Fault("R20", "messages", what)
    if not messages and not request.terms.open_tail:
        yield Fault("R13", "messages", "a request needs a user message: add one")
    elif _begins_with_a_reply(request):
        yield Fault("R13", "messages.0.role", "the first message must be a user's: put one before")
    if request.terms.traits.requires_alternation:
        yield from _check_alternation(messages)
    yield from _check_content(request)
    yield from _check_end(request)


def _begins_with_a_reply(request: Request) -> bool:
    first = request.messages[0] if request.messages else None
    if first is None or first.role != "assistant" or request.terms.earlier_calls is not None:
        return False
    return not starts_with_compaction(first)


def starts_with_compaction(message: Turned) -> bool:
    """Whether a message opens with what the API compacted."""
    return bool(message.blocks) and message.blocks[0].block["type"] == "compaction"


def _check_alternation(messages: Sequence[Turned]) -> Iterator[Fault]:
    for number, (before, message) in enumerate(pairwise(messages), start=1):
        if before.role == message.role and message.role in ("user", "assistant"):
            what = f"two {message.role} messages in a row: join them, results first"
            yield Fault("R14", f"messages.{number}.role", what)


def _check_content(request: Request) -> Iterator[Fault]:
    final = len(request.messages) - 1
    for number, message in enumerate(request.messages):
        if message.blocks or message.content not in ("", [], ()):
            continue
        if message.message.get("output_config"):
            continue
        if not (number == final and message.role == "assistant"):
            what = "has no content: give it some or remove the message"
            yield Fault("R17", f"messages.{number}", what)


def _check_end(request: Request) -> Iterator[Fault]:
    number = len(request.messages) - 1
    if request.terms.open_tail or number < 0 or request.messages[number].role != "assistant":
        return
    said = request.messages[number].blocks
    if said and is_call(said[-1].block):
        return  # an open client call is R1's business, a pending server-side one is legal
    if not request.terms.traits.supports_prefill:
        what = "this model starts its own reply: end with a user message"
        yield Fault("R19", f"messages.{number}.role", what)
    text = said[-1].block.get("text") if said else None
    if isinstance(text, str) and text != text.rstrip() and not text.isspace():
        yield Fault("R18", said[-1].path, "the last reply ends with whitespace: strip it")


def check_system_messages(request: Request) -> Iterator[Fault]:
    """System messages stand between what a user said and the reply, where a model takes them."""
    for run in system_runs([message.role for message in request.messages]):
        if not request.terms.traits.supports_system_role:
            rule, what = "R59", "this model takes no system messages: use the `system` parameter"
        elif not system_may_stand(request.messages, run):
            rule, what = "R60", "a system message stands between a user's and the reply: move it"
        else:
            continue
        yield from (Fault(rule, f"messages.{number}.role", what) for number in run)


def system_runs(roles: Sequence[str]) -> Iterator[range]:
    """Where system messages stand; several in a row count as one."""
    at = 0
    for role, run in groupby(roles):
        start, at = at, at + len(list(run))
        if role == "system":
            yield range(start, at)


def system_may_stand(messages: Sequence[Turned], run: range) -> bool:
    """Whether system messages may stand here."""
    before = messages[run.start - 1] if run.start else None
    after = messages[run.stop].role if run.stop < len(messages) else "assistant"
    follows = before is not None and (before.role == "user" or ends_in_server_result(before))
    return follows and after == "assistant"


def ends_in_server_result(message: Turned) -> bool:
    """Whether an assistant message ends with the result of a server-side call."""
    kind = message.blocks[-1].block["type"] if message.blocks else ""
    return message.role == "assistant" and kind.endswith("_tool_result")
