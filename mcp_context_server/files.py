"""Reading files that a caller names: only below allowed directories, links resolved first."""

from dataclasses import dataclass
from pathlib import Path

import anyio

from mcp_context_server.errors import InvalidInput

MOST_BYTES = 64 * 1024 * 1024
"""The largest file that is read whole."""


@dataclass(frozen=True, slots=True)
class FileReader:
    """Reads text files below `roots`; with no roots, none."""

    roots: tuple[Path, ...] = ()

    async def read(self, path: str) -> str:
        """The text of a file. Raises `InvalidInput` where it may not or can't be read."""
        resolved = await anyio.Path(path).expanduser()
        resolved = Path(await resolved.resolve())
        if not any(resolved.is_relative_to(root) for root in self.roots):
            allowed = ", ".join(str(root) for root in self.roots) or "none"
            message = f"{path!r} is not below an allowed directory (allowed: {allowed})."
            raise InvalidInput(message)
        return await _read(resolved)


async def _read(path: Path) -> str:
    try:
        size = (await anyio.Path(path).stat()).st_size
        if size > MOST_BYTES:
            message = f"{str(path)!r} has {size:,} bytes; at most {MOST_BYTES:,} are read."
            raise InvalidInput(message)
        return await anyio.Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        message = f"{str(path)!r} can't be read: {error.strerror}."
        raise InvalidInput(message) from error
