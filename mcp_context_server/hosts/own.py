"""Which conversation of the host is calling, and where the host writes it down."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from mcp_context_server.identity import HostSession
from mcp_context_server.transcripts.locate import (
    TOOL_USE_KEY,
    Found,
    find_transcript,
    holds_call,
    unfollowed_session,
)

CALL_RETRIES = 3
"""The host may write the record of a call a moment after it makes the call."""
RETRY_SECONDS = 0.05

CLAUDE_CODE_SIGNS = ("CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_PROJECT_DIR")
"""Any of these in the environment tells that Claude Code started this process."""


@dataclass(slots=True)
class OwnTranscript:
    """Finds the calling conversation's transcript in an environment that is handed in."""

    environment: Mapping[str, str]
    home: Path
    cwd: Path
    _last: Found | None = None

    async def __call__(
        self, meta: Mapping[str, Any], *, is_asked: bool = False
    ) -> HostSession | None:
        """The caller's conversation; a guess by the directory only in its host, or when asked.

        Hosts that name it without a transcript that can be followed have one session for
        each of their conversations all the same.
        """
        session = unfollowed_session(meta, self.environment)
        if session is not None:
            return HostSession(session)
        guess = is_asked or any(self.environment.get(sign) for sign in CLAUDE_CODE_SIGNS)
        found = await self._found(meta, self.cwd if guess else None)
        if found is None:
            return None
        return HostSession(found.path.stem, str(found.path), found.format)

    async def _found(self, meta: Mapping[str, Any], cwd: Path | None) -> Found | None:
        """Looks again shortly where the call's own record is not written yet."""
        found = await anyio.to_thread.run_sync(self._look, meta, cwd)
        for _ in range(CALL_RETRIES if isinstance(meta.get(TOOL_USE_KEY), str) else 0):
            if found is None or found.by == "call":
                break
            await anyio.sleep(RETRY_SECONDS)
            found = await anyio.to_thread.run_sync(self._look, meta, cwd)
        return found

    def _look(self, meta: Mapping[str, Any], cwd: Path | None) -> Found | None:
        call = meta.get(TOOL_USE_KEY)
        last = self._last
        if last is not None and isinstance(call, str) and holds_call(last.path, call):
            return last
        found = find_transcript(meta=meta, environment=self.environment, home=self.home, cwd=cwd)
        self._last = found or self._last
        return found
