"""Bearer tokens in a file: who has which."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mcp.server.auth.provider import AccessToken

from mcp_context_server.errors import InvalidInput

logger = logging.getLogger(__name__)

LEAST_TOKEN_CHARS = 16
"""Shorter tokens are refused: they could be guessed."""

HASHED = re.compile(r"sha256:([0-9a-fA-F]{64})")


@dataclass(slots=True)
class TokenFile:
    """The tokens in a file, read again whenever it changes.

    A line is a principal and its token, or the token's `sha256:` in hex; `#` starts a
    comment. A principal may have several tokens. Raises `InvalidInput` at first for
    anything that is wrong; later, what is wrong lets nobody in, and is logged.
    """

    path: Path
    scopes: Sequence[str] = ()
    _owners: Mapping[bytes, str] = field(init=False)
    _seen: tuple[int, ...] | None = field(init=False)

    def __post_init__(self) -> None:
        try:
            self._seen = self._stamp()
            self._owners, faults = read_tokens(self.path)
        except OSError as error:
            message = f"The token file {str(self.path)!r} can't be read: {error.strerror}."
            raise InvalidInput(message) from error
        if faults:
            message = f"The token file {str(self.path)!r}: {faults[0]}"
            raise InvalidInput(message)

    async def verify_token(self, token: str) -> AccessToken | None:
        self._refresh()
        # Looked up by its digest, how long it takes tells nothing of other tokens.
        owner = self._owners.get(hashlib.sha256(token.encode(errors="replace")).digest())
        if owner is None:
            return None
        return AccessToken(token=token, client_id=owner, subject=owner, scopes=list(self.scopes))

    def _refresh(self) -> None:
        try:
            stamp = self._stamp()
            if stamp == self._seen:
                return
            self._owners, faults = read_tokens(self.path)
        except OSError as error:
            stamp, faults = None, (f"can't be read: {error.strerror}.",)
            self._owners = dict[bytes, str]()
            if self._seen is None:
                return
        self._seen = stamp
        for fault in faults:
            logger.error("The token file %s: %s", self.path, fault)
        logger.info("The token file %s was read again: %d tokens", self.path, len(self._owners))

    def _stamp(self) -> tuple[int, ...]:
        found = self.path.stat()
        return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def read_tokens(path: Path) -> tuple[Mapping[bytes, str], Sequence[str]]:
    """The principals by their tokens' SHA-256, and what is wrong with the file. Raises `OSError`.

    A file that others can change holds no tokens, nor does one that shows them to others.
    """
    mode, text = path.stat().st_mode, path.read_bytes().decode(errors="replace")
    owners: dict[bytes, str] = {}
    faults: list[str] = []
    is_plain = False
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        if fault := _fault_of(words):
            faults.append(f"line {number} {fault}")
            continue
        hashed = HASHED.fullmatch(words[1])
        is_plain = is_plain or hashed is None
        digest = bytes.fromhex(hashed[1]) if hashed else hashlib.sha256(words[1].encode()).digest()
        owners[digest] = words[0]
    if fault := _exposure(mode, is_plain=is_plain):
        return {}, (fault,)
    return owners, faults or (() if owners else ("there is no token in it.",))


def _fault_of(words: Sequence[str]) -> str:
    if len(words) != 2:
        return "is not a principal and a token, separated by a space."
    if len(words[1]) < LEAST_TOKEN_CHARS:
        return f"has a token of fewer than {LEAST_TOKEN_CHARS} characters; make a longer one."
    if words[1].startswith("sha256:") and not HASHED.fullmatch(words[1]):
        return "has a sha256 that is not 64 hexadecimal digits."
    return ""


def _exposure(mode: int, *, is_plain: bool) -> str:
    if os.name != "posix":
        return ""
    if mode & stat.S_IWOTH:
        return "everybody can write to it. Run chmod o-w on it."
    if is_plain and mode & stat.S_IROTH:
        return "everybody can read it. Run chmod 600 on it, or put each token's sha256: in it."
    return ""
