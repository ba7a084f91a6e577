"""Changes to other programs' files: shown first, written at once, undone exactly.

A file that is changed leaves a backup beside it, and a receipt in the user's data
directory says what it held before and after. Where nothing else changed since, undoing
gives back the very bytes.
"""

import hashlib
import json
import os
import secrets
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Any, cast

from mcp_context_server.core.redact import redact
from mcp_context_server.errors import HostFileUnusable
from mcp_context_server.regular import open_regular

BACKUP_SUFFIX = ".before-mcp-context-server"
LARGEST_BYTES = 64 << 20
"""A larger file is no settings file."""


@dataclass(frozen=True, slots=True)
class Change:
    """A file as it is and as it shall be; `None` is no file."""

    path: Path
    before: bytes | None
    after: bytes | None
    notes: tuple[str, ...] = ()

    @property
    def is_needed(self) -> bool:
        return self.before != self.after

    def diff(self) -> str:
        """What would change, secrets masked."""
        ends = (self.before or b"", self.after or b"")
        old, new = (redact(data.decode("utf-8", "replace")) for data in ends)
        lines = unified_diff(old.splitlines(), new.splitlines(), str(self.path), "", lineterm="")
        return "\n".join(lines)


def text_of(path: Path) -> str | None:
    """A file's text, its mark of byte order kept; None where there is no file.

    Raises `HostFileUnusable` where it can't be read, or is no UTF-8.
    """
    data = bytes_of(path)
    try:
        return None if data is None else data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise HostFileUnusable(path, f"it is not UTF-8 ({error.reason})") from error


def bytes_of(path: Path) -> bytes | None:
    try:
        with open_regular(path) as file:
            data = file.read(LARGEST_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise HostFileUnusable(path, error.strerror or str(error)) from error
    if len(data) > LARGEST_BYTES:
        raise HostFileUnusable(path, f"it has more than {LARGEST_BYTES:,} bytes")
    return data


def write(changes: Iterable[Change]) -> None:
    """Make the changes, all or none. Raises `HostFileUnusable`."""
    done = list[Change]()
    try:
        for change in changes:
            _put(change.path, change.before, change.after)
            done.append(change)
    except HostFileUnusable:
        for change in reversed(done):
            _put(change.path, change.after, change.before)
        raise


def back_up(change: Change) -> Path | None:
    """Keep a file's bytes beside it, readable by whoever may read the file."""
    if change.before is None:
        return None
    path = change.path.with_name(change.path.name + BACKUP_SUFFIX)
    _put(path, bytes_of(path), change.before, like=change.path)
    return path


def _put(
    path: Path, expected: bytes | None, data: bytes | None, *, like: Path | None = None
) -> None:
    """Put bytes in a file's place at once, links followed and its mode kept."""
    try:
        path = path.resolve() if path.is_symlink() else path
        if bytes_of(path) != expected:
            raise HostFileUnusable(path, "it was changed in between; try again")
        if data is None:
            path.unlink(missing_ok=True)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, data, _mode(like or path))
    except OSError as error:
        raise HostFileUnusable(path, error.strerror or str(error)) from error


def _replace(path: Path, data: bytes, mode: int) -> None:
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        fresh.chmod(mode)
        os.replace(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)


def _mode(path: Path) -> int:
    """The mode of a file; of a new one, that its owner alone may read it."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return 0o600


# ── receipts ─────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a file held before we changed it, and that it is ours to give back."""

    after: str
    """Digest of the file as we left it."""
    before: str | None
    """Digest of the backup; None where there was no file."""


@dataclass(frozen=True, slots=True)
class Receipts:
    """The receipts, in one file of the user's data directory."""

    path: Path

    def of(self, file: Path) -> Receipt | None:
        found = self._read().get(str(file.absolute()))
        if not isinstance(found, dict):
            return None
        told = cast("dict[str, Any]", found)
        return Receipt(str(told.get("after")), told.get("before"))

    def keep(self, file: Path, receipt: Receipt | None) -> None:
        """Write a receipt down, or forget it."""
        known = self._read()
        known.pop(str(file.absolute()), None)
        if receipt is not None:
            known[str(file.absolute())] = {"after": receipt.after, "before": receipt.before}
        data = json.dumps(known, indent=1).encode()
        _put(self.path, bytes_of(self.path), data)

    def original(self, file: Path, now: bytes | None) -> tuple[bool, bytes | None]:
        """Whether the file is as we left it and, if so, the bytes it held before."""
        receipt = self.of(file)
        if receipt is None or now is None or receipt.after != digest(now):
            return False, None
        kept = self.backup(file)
        return kept is not None or receipt.before is None, kept

    def backup(self, file: Path) -> bytes | None:
        """The bytes a file held before, where its backup is still the one of the receipt."""
        receipt = self.of(file)
        kept = bytes_of(file.with_name(file.name + BACKUP_SUFFIX)) if receipt else None
        is_ours = receipt is not None and kept is not None and digest(kept) == receipt.before
        return kept if is_ours else None

    def is_made(self, file: Path) -> bool:
        """Whether there was no such file before us."""
        receipt = self.of(file)
        return receipt is not None and receipt.before is None

    def _read(self) -> dict[str, Any]:
        try:
            known = json.loads(bytes_of(self.path) or b"{}")
        except (ValueError, RecursionError):
            return {}
        return cast("dict[str, Any]", known) if isinstance(known, dict) else {}


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
