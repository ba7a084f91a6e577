"""Reading files that a caller names: only below allowed directories, links resolved first."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import anyio
import anyio.to_thread

from mcp_context_server.errors import InvalidInput, brief
from mcp_context_server.regular import open_regular

MOST_BYTES = 64 * 1024 * 1024
"""The largest file that is read whole."""


@dataclass(frozen=True, slots=True)
class FileReader:
    """Reads text files below `roots`; with no roots, none."""

    roots: tuple[Path, ...] = ()

    async def read(self, path: str) -> str:
        """The text of a file. Raises `InvalidInput` where it may not or can't be read."""
        try:
            resolved = await _resolved(path)
        except (OSError, ValueError, RuntimeError) as error:
            message = f"{brief(path)} is no path that can be read: {error}."
            raise InvalidInput(message) from error
        if not self._allows(resolved):
            allowed = ", ".join(str(root) for root in self.roots) or "none"
            message = f"{brief(path)} is not below an allowed directory (allowed: {allowed})."
            raise InvalidInput(message)
        return await _read(resolved)

    async def state(self, path: str) -> Literal["readable", "missing", "forbidden"]:
        """Whether a file may be read and is there; of a forbidden one nothing more is told."""
        try:
            resolved = await _resolved(path)
            if not self._allows(resolved):
                return "forbidden"
            return "readable" if await anyio.Path(resolved).is_file() else "missing"
        except (OSError, ValueError, RuntimeError):
            return "forbidden"

    def _allows(self, resolved: Path) -> bool:
        return any(resolved.is_relative_to(root) for root in self.roots)


async def _resolved(path: str) -> Path:
    expanded = await anyio.Path(path).expanduser()
    return Path(await expanded.resolve())


async def _read(path: Path) -> str:
    try:
        data = await anyio.to_thread.run_sync(_beginning, path)
    except OSError as error:
        message = f"{str(path)!r} can't be read: {error.strerror}."
        raise InvalidInput(message) from error
    if len(data) > MOST_BYTES:
        message = f"{str(path)!r} is too long: at most {MOST_BYTES:,} bytes are read."
        raise InvalidInput(message)
    return data.decode("utf-8", "replace")


def _beginning(path: Path) -> bytes:
    with open_regular(path) as file:
        return file.read(MOST_BYTES + 1)
