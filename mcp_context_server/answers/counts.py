"""What something would take, as `estimate_tokens` answers it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mcp_context_server.core.models import lookup
from mcp_context_server.core.tokens.claude_code import claude_code_text_tokens, claude_code_tokens
from mcp_context_server.core.tokens.estimates import (
    Tally,
    estimate,
    tally_messages,
    tally_text,
    tally_tools,
)
from mcp_context_server.ports import Countable
from mcp_context_server.results import (
    TokenEstimate,
)
from mcp_context_server.transcripts.given import given_messages

Method = Literal["calibrated", "claude-code"]


@dataclass(frozen=True, slots=True)
class Estimable:
    """What `estimate_tokens` was given; exactly one of these, and a file's text with its path."""

    text: str = ""
    messages: Sequence[Mapping[str, Any]] | None = None
    tools: Sequence[Mapping[str, Any]] | None = None
    path: str = ""


def estimate_of(
    session_id: str, what: Estimable, model: str, method: Method, *, factor: float
) -> TokenEstimate:
    """The answer of `estimate_tokens`. Raises `InvalidInput` for messages that are none.

    `factor` is what the session has learned of this model; 1 for any other.
    """
    if method == "claude-code":
        tokens = _claude_code(what)
        low, high = tokens, tokens
    else:
        estimated = estimate(_tally(what, lookup(model).tokenizer), factor=factor)
        # Whatever is given takes at least one token.
        tokens, high = max(1, estimated.tokens), max(1, estimated.high)
        low = min(estimated.low, tokens)
    return TokenEstimate(
        session_id=session_id,
        tokens=tokens,
        low=low,
        high=high,
        method=method,
        model=model,
    )


def countable_of(what: Estimable, model: str) -> Countable:
    """The same for an exact count. Raises `InvalidInput` for messages that are none."""
    return Countable(
        model=model,
        text=what.text,
        messages=given_messages(what.messages) if what.messages is not None else (),
        tools=tuple(what.tools or ()),
    )


def counted(estimated: TokenEstimate, tokens: int) -> TokenEstimate:
    """The answer where an exact count was had."""
    exact = {"tokens": tokens, "low": tokens, "high": tokens, "method": "exact"}
    return estimated.model_copy(update=exact)


def uncounted(estimated: TokenEstimate, reason: object) -> TokenEstimate:
    """The answer where none was."""
    return estimated.model_copy(update={"note": f"No exact count: {reason}"})


def _tally(what: Estimable, family: str) -> Tally:
    if what.messages is not None:
        return tally_messages(given_messages(what.messages), family)
    if what.tools is not None:
        return tally_tools(what.tools, family)
    return tally_text(what.text, family, "result" if what.path else "user")


def _claude_code(what: Estimable) -> int:
    if what.messages is not None:
        return claude_code_tokens(given_messages(what.messages))
    if what.tools is not None:
        return claude_code_text_tokens(json.dumps(what.tools, ensure_ascii=False), "tools.json")
    return claude_code_text_tokens(what.text, what.path or None)
