"""Completions: what an argument of a prompt, or of a resource's address, may go on to be."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from mcp import MCPError
from mcp.server import MCPServer
from mcp.server.context import ServerRequestContext
from mcp.types import (
    INVALID_PARAMS,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    PromptReference,
    ResourceTemplateReference,
)

from mcp_context_server.core.messages import is_prompt
from mcp_context_server.errors import ContextServerError, brief
from mcp_context_server.state import App

MOST_VALUES = 100
"""Values in one answer; the protocol allows no more."""

Requested = ServerRequestContext[App, Any]
Given = Mapping[str, str]
"""The arguments that are filled in already."""

Completer = Callable[[Requested, Given], Awaitable[Iterable[str]]]
"""Every value that an argument may have, the likeliest first."""


def serve_completions(server: MCPServer[App]) -> None:
    """Serve completions; made before a handshake tells of them."""

    async def complete(ctx: Requested, params: CompleteRequestParams) -> CompleteResult:
        given = dict((params.context.arguments if params.context else None) or {})
        names = await _arguments_of(server, params.ref)
        completer = COMPLETERS.get(params.argument.name)
        if completer is None or params.argument.name not in names:
            return CompleteResult(completion=Completion(values=[], total=0, has_more=False))
        values = await completer(ctx, given)
        return CompleteResult(completion=_completion(values, params.argument.value))

    low = server._lowlevel_server  # pyright: ignore[reportPrivateUsage]
    low.add_request_handler("completion/complete", CompleteRequestParams, complete)


def _completion(values: Iterable[str], start: str) -> Completion:
    """The values that go on from `start`, whatever the case of its letters."""
    found = [value for value in values if value.casefold().startswith(start.casefold())]
    return Completion(
        values=found[:MOST_VALUES], total=len(found), has_more=len(found) > MOST_VALUES
    )


async def _arguments_of(
    server: MCPServer[App], ref: PromptReference | ResourceTemplateReference
) -> set[str]:
    """The names of what can be completed there. Raises `MCPError` where there is no such thing."""
    if isinstance(ref, PromptReference):
        for prompt in await server.list_prompts():
            if prompt.name == ref.name:
                return {argument.name for argument in prompt.arguments or ()}
        message = f"No prompt {brief(ref.name)}. prompts/list names them all."
        raise MCPError(INVALID_PARAMS, message)
    templates = server._resource_manager.list_templates()  # pyright: ignore[reportPrivateUsage]
    for template in templates:
        if ref.uri in (template.uri_template, template.uri_template.partition("{?")[0]):
            return set(template.parsed_template.variable_names)
    message = f"No resource template {brief(ref.uri)}. resources/templates/list names them all."
    raise MCPError(INVALID_PARAMS, message, {"uri": ref.uri})


async def _sessions(ctx: Requested, given: Given) -> Iterable[str]:
    """The caller's own sessions, newest first."""
    from mcp_context_server.tools.surface import app, call_of

    records = await app(ctx).service.store.records(call_of(ctx, "").principal)
    return [record.session_id for record, _ in records]


async def _prompts(ctx: Requested, given: Given) -> Iterable[str]:
    """The messages of a person in the session, newest first; none where there is no session."""
    from mcp_context_server.tools.surface import session_of

    try:
        live = await session_of(ctx, given.get("session_id", ""))
    except ContextServerError:
        return ()
    return [message.id for message in reversed(live.session.view) if is_prompt(message)]


async def _scopes(ctx: Requested, given: Given) -> Iterable[str]:
    return ("all", "from", "up_to")


COMPLETERS: Mapping[str, Completer] = {
    "session_id": _sessions,
    "after": _sessions,
    "pivot_message_id": _prompts,
    "scope": _scopes,
}
"""By the argument's name, which means the same wherever it stands."""
