"""What hooks leave for one another between calls: small files in the user's state directory."""

import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

MOST_LOG_BYTES = 1 << 20
"""A log beyond this is begun anew; the one before it is kept."""

_PLAIN = re.compile(r"[A-Za-z0-9][\w-]{0,99}")


@dataclass(frozen=True, slots=True)
class State:
    """Files below `directory`, readable by their owner only."""

    directory: Path

    @classmethod
    def of_user(cls) -> "State":
        return cls(user_state_directory(os.environ, sys.platform))

    def read(self, kind: str, key: str) -> dict[str, Any]:
        """What was kept under a key; empty where nothing was, or nothing that can be read."""
        try:
            value = json.loads(self._path(kind, key).read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        return cast("dict[str, Any]", value) if isinstance(value, dict) else {}

    def keep(self, kind: str, key: str, value: dict[str, Any]) -> None:
        """Put a value under a key, at once. Raises `OSError`."""
        path = self._path(kind, key)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        with os.fdopen(os.open(fresh, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "w") as file:
            json.dump(value, file)
        os.replace(fresh, path)

    def change(self, kind: str, key: str, **facts: Any) -> None:
        """Change some facts of a value; written only where one of them is new."""
        known = self.read(kind, key)
        if any(known.get(name) != fact for name, fact in facts.items()):
            self.keep(kind, key, {**known, **facts})

    def forget(self, kind: str, key: str) -> None:
        self._path(kind, key).unlink(missing_ok=True)

    def prune(self, before: float) -> None:
        """Forget what was kept before a time, in seconds since the epoch."""
        for path in self.directory.glob("*/*.json"):
            if path.stat().st_mtime < before:
                path.unlink(missing_ok=True)

    def log(self, text: str) -> None:
        """Add a line to the log; where that can't be done, nobody can be told."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            path = self.directory / "hooks.log"
            if path.exists() and path.stat().st_size > MOST_LOG_BYTES:
                os.replace(path, path.with_name("hooks.log.1"))
            descriptor = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
            with os.fdopen(descriptor, "a", encoding="utf-8", errors="replace") as file:
                file.write(text.rstrip() + "\n")
        except OSError:
            return

    def _path(self, kind: str, key: str) -> Path:
        if not _PLAIN.fullmatch(key):
            import hashlib

            key = "~" + hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return self.directory / kind / f"{key}.json"


def user_state_directory(environ: Mapping[str, str], platform: str) -> Path:
    """The directory that `platformdirs` names, which takes longer to import than a hook may."""
    home = Path(environ["HOME"]) if environ.get("HOME") else Path.home()
    match platform:
        case "darwin":
            base = home / "Library" / "Application Support"
        case "win32":
            base = Path(environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
        case _:
            given = environ.get("XDG_STATE_HOME", "").strip()
            base = Path(given) if given else home / ".local" / "state"
    return base / "mcp-context-server"
