"""What a session is opened with, and whether its policy can be."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from mcp_context_server.core.edits import Configure
from mcp_context_server.core.policy import Policy
from mcp_context_server.core.stages.turn import Kind
from mcp_context_server.errors import InvalidInput, brief


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What `session_open` was given."""

    session_id: str | None = None
    principal: str = ""
    kind: Kind = "main"
    parent_id: str | None = None
    configure: Configure = field(default_factory=Configure)


def check_policy(policy: Policy, overrides: Mapping[str, Any]) -> None:
    """Raises `InvalidInput` for overrides that can't be."""
    try:
        Policy.model_validate({**policy.model_dump(exclude_unset=True), **overrides})
    except ValidationError as error:
        raise InvalidInput(_refused(error)) from error


def _refused(error: ValidationError) -> str:
    """What is wrong with overrides of the policy, and what to give instead."""
    first = error.errors(include_url=False)[0]
    name = ".".join(map(str, first["loc"]))[:NAME_CHARS]
    return f"policy.{name}{_fault(first, name)}. All are told in docs/reference/policy.md."


def _fault(first: ErrorDetails, name: str) -> str:
    if first["type"] == "extra_forbidden":
        nearest = get_close_matches(name, Policy.model_fields, n=1)
        hint = f" (did you mean `{nearest[0]}`?)" if nearest else ""
        return f": there is no such number{hint}"
    _, should, wanted = first["msg"].partition("Input should be ")
    if not should:
        return f": {first['msg']}"
    return f" must be {wanted.partition(', unable')[0]}, not {brief(first['input'])}"


NAME_CHARS = 100
"""How much of a name that is refused is repeated."""
