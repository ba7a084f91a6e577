"""Session memories as Markdown files in a directory, one per session."""

import hashlib
import os
import re
import secrets
import time
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from mcp_context_server.ports import FoundFile
from mcp_context_server.regular import open_regular

MOST_BYTES = 1_000_000
"""A file larger than this is no memory of ours; only its beginning is read."""

BACKUP = ".bak"
"""What the name of a replaced file ends with."""

_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,100}")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class MemoryDirectory:
    """Files below `directory`, which is made where it is missing; readable by their owner only."""

    directory: Path

    def path(self, session_id: str) -> Path:
        """Where a session's file is; an id that is no plain file name stands there by its hash."""
        if _PLAIN_NAME.fullmatch(session_id) and not _RESERVED.fullmatch(session_id):
            return self.directory / f"{session_id}.md"
        digest = hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return self.directory / f"~{digest}.md"

    async def read(self, session_id: str) -> FoundFile | None:
        return await anyio.to_thread.run_sync(_read, self.path(session_id))

    async def write(
        self, session_id: str, data: bytes, *, over: bytes | None, is_kept: bool
    ) -> bool:
        path = self.path(session_id)
        return await anyio.to_thread.run_sync(_write, path, data, over, is_kept)

    async def delete(self, session_id: str) -> None:
        """Remove a session's file, and the backup beside it. Raises `OSError`."""
        path = self.path(session_id)
        for file in (path, path.with_name(f"{path.name}{BACKUP}")):
            await anyio.to_thread.run_sync(lambda gone=file: gone.unlink(missing_ok=True))


def _read(path: Path) -> FoundFile | None:
    """The file, not followed where it is a link."""
    try:
        file = open_regular(path, follows_links=False)
    except FileNotFoundError:
        return None
    with file:
        age = time.time() - os.fstat(file.fileno()).st_mtime
        return FoundFile(file.read(MOST_BYTES), max(0.0, age))


def _write(path: Path, data: bytes, over: bytes | None, is_kept: bool) -> bool:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        _create(fresh, data)
        found = _read(path)
        if (found.data if found else None) != over:
            return False
        if found is not None and is_kept:
            os.replace(path, path.with_name(f"{path.name}{BACKUP}"))
        os.replace(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)
    return True


def _create(path: Path, data: bytes) -> None:
    with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        file.write(data)
