"""Which session a call is for: the argument, the host's hint, the connection, the process."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from anyio import Path

from mcp_context_server.core.edits import Configure
from mcp_context_server.errors import (
    InvalidInput,
    SessionNotFound,
    SessionRequired,
    TranscriptUnreadable,
)
from mcp_context_server.keeping.resident import Live
from mcp_context_server.service.opening import Opening
from mcp_context_server.service.sessions import ContextService

CONNECTION = "mcp_context_server.connection"
"""Where in an HTTP request's scope a transport leaves the id of its connection."""


@dataclass(frozen=True, slots=True)
class Call:
    """What a call says of who makes it and for which conversation."""

    session_id: str = ""
    """The argument; empty where it was left out."""
    principal: str = ""
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The call's `_meta`; some hosts name the conversation in it."""
    connection: str = ""
    """The id of the connection, where the transport has one."""
    is_stdio: bool = True


@dataclass(frozen=True, slots=True)
class HostSession:
    """The conversation that the host says is calling."""

    session_id: str
    transcript: str | None = None
    transcript_format: str | None = None


class HostHint(Protocol):
    """Finds the calling conversation from a call's `_meta` and the server's environment."""

    async def __call__(
        self, meta: Mapping[str, Any], *, is_asked: bool = False
    ) -> HostSession | None:
        """The conversation, if the host tells; `is_asked` where a caller asked for its own."""
        ...


async def no_hint(meta: Mapping[str, Any], *, is_asked: bool = False) -> HostSession | None:
    """A host that tells nothing."""
    return None


NO_HOST = (
    "The host doesn't say which conversation is calling, so its transcript can't be found. "
    "Give the transcript's path, or hand the messages in with `append_messages`."
)

NOT_ALLOWED = (
    "Over the network, a transcript is followed only below the directories of "
    "MCP_CONTEXT_ALLOWED_ROOTS. Hand the messages in with `append_messages` instead."
)


@dataclass(slots=True)
class Identity:
    """Finds the session of a call, opening it where the call has one of its own."""

    service: ContextService
    hint: HostHint = no_hint
    _default: str = ""

    async def session_of(self, call: Call) -> Live:
        """The session, following its transcript. Raises `SessionRequired`, `SessionNotFound`."""
        live = await self._found(call)
        return await self.service.follow(live)

    async def open(self, call: Call, opening: Opening) -> tuple[Live, bool]:
        """Open the session that a `session_open` asks for; whether it is new comes second."""
        opening = replace(opening, principal=call.principal)
        if call.session_id and call.principal:
            await self.service.load(call.session_id, call.principal)
        session_id = call.session_id or None
        if opening.configure.transcript == "auto":
            host = await self._host(call)
            told = {"transcript": host.transcript, "transcript_format": host.transcript_format}
            session_id = session_id or host.session_id
            opening = replace(opening, configure=opening.configure.model_copy(update=told))
        elif not call.is_stdio:
            await self._check_allowed(opening.configure.transcript)
        if session_id and opening.configure.transcript:
            await self._check_follows(session_id, call.principal)
        live, created = await self.service.open(replace(opening, session_id=session_id))
        if call.is_stdio and opening.kind == "main":
            self._default = self._default or live.record.session_id
        return await self.service.follow(live), created

    async def _check_allowed(self, transcript: str | None) -> None:
        """Who calls from elsewhere reads no file of this machine that is not meant for it."""
        if transcript and await self.service.files.state(transcript) == "forbidden":
            raise TranscriptUnreadable(NOT_ALLOWED)

    async def _check_follows(self, session_id: str, principal: str) -> None:
        """A transcript takes the place of no messages that were handed in."""
        try:
            session = (await self.service.load(session_id, principal)).session
        except SessionNotFound:
            return
        is_followed = session.follows or session.follow is not None
        if not is_followed and any(not message.is_meta for message in session.view):
            message = (
                f"Session {session_id!r} has messages that were appended, which a transcript would "
                "take the place of; nothing was changed. Give another `session_id` to follow it."
            )
            raise InvalidInput(message)

    async def _host(self, call: Call) -> HostSession:
        """The caller's own conversation. Raises `TranscriptUnreadable` where no host tells it."""
        host = await self.hint(call.meta, is_asked=True) if call.is_stdio else None
        if host is None or host.transcript is None:
            raise TranscriptUnreadable(NO_HOST)
        return host

    async def _found(self, call: Call) -> Live:
        if call.session_id:
            return await self.service.load(call.session_id, call.principal)
        host = await self.hint(call.meta) if call.is_stdio else None
        if host is not None:
            return await self._own(host, call.principal)
        session_id = call.connection or (self._process_session() if call.is_stdio else "")
        if not session_id:
            raise SessionRequired
        return await self._own(HostSession(session_id), call.principal)

    async def _own(self, host: HostSession, principal: str) -> Live:
        """The session of that id, opened on first use."""
        configure = Configure()
        if host.transcript is not None:
            configure = Configure(
                transcript=host.transcript, transcript_format=host.transcript_format
            )
        opening = Opening(session_id=host.session_id, principal=principal, configure=configure)
        live = await self.service.ensure(opening)
        followed = live.session.settings.transcript
        if host.transcript in (None, followed) or (followed and await Path(followed).exists()):
            return live
        # The host has moved its file: the session follows the living one.
        return (await self.service.open(opening))[0]

    def _process_session(self) -> str:
        self._default = self._default or self.service.new_id()
        return self._default
