"""What the resources hold, as JSON. Fields may be added here, none renamed or taken away."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from mcp_context_server.core.stages.turn import Kind
from mcp_context_server.results import Result


class Listed(BaseModel):
    """A session in the list of all."""

    model_config = ConfigDict(frozen=True)

    session_id: str
    title: str
    """Of its memory, else how its first request begins; empty where there is neither."""
    uri: str
    """Where its parts are: add `/status`, `/view` and so on."""
    kind: Kind
    parent_id: str | None
    created_at: str
    version: int


class SessionList(BaseModel):
    """A page of a principal's sessions, newest first."""

    model_config = ConfigDict(frozen=True)

    sessions: tuple[Listed, ...]
    parts: tuple[str, ...]
    total: int
    next: str | None
    """The address of the next page, where there is one."""


class ViewPage(Result):
    version: int
    messages: tuple[Mapping[str, Any], ...]
    total: int
    next: str | None


class TranscriptPage(Result):
    version: int
    entries: tuple[Mapping[str, Any], ...]
    next: str | None


class Boundaries(Result):
    version: int
    boundaries: tuple[Mapping[str, Any], ...]
