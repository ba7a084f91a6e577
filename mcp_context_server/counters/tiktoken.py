"""Exact counts for OpenAI's models by `tiktoken`, if it and its data are on the machine already.

tiktoken downloads a vocabulary that it does not find in its cache. Here that never
happens: the cached file is looked for, and its hash checked, before tiktoken is asked.
"""

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Protocol

import anyio
from anyio import to_thread

from mcp_context_server.core.messages import Message
from mcp_context_server.core.models import lookup
from mcp_context_server.errors import CountUnavailable
from mcp_context_server.ports import Countable

TIMEOUT_SECONDS = 15.0
MESSAGE_TOKENS = 4
"""A message's role and the marks around it, as OpenAI documents the chat format."""
PIECE_CHARS = 100_000
"""What is encoded at once. tiktoken panics on a much longer run of white space."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """A file in tiktoken's cache."""

    cache_key: str
    """Its name there: the SHA-1 of its address."""
    sha256: str


VOCABULARIES: Mapping[str, Vocabulary] = {
    "o200k_base": Vocabulary(
        "fb374d419588a4632f3f557e76b4b70aebbca790",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
    "cl100k_base": Vocabulary(
        "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
}
OLDER_MODELS = ("gpt-3.5", "gpt-3.5-instruct", "gpt-4", "gpt-4-32k", "gpt-4-turbo")
"""Those of the catalog that have `cl100k_base`; all later ones have `o200k_base`."""


class Encoding(Protocol):
    def encode_ordinary(self, text: str, /) -> Sequence[int]:
        """The tokens of a text, none of it read as a special token."""
        ...


def local_encoding(name: str) -> Encoding:
    """An encoding of `VOCABULARIES`, from this machine alone. Raises `CountUnavailable`."""
    path = _cached_file(VOCABULARIES[name].cache_key)
    if path is None:
        message = f"the data of tiktoken's {name} is not on this machine."
        raise CountUnavailable(message)
    return _encoding(name, path)


@cache
def _encoding(name: str, path: Path) -> Encoding:
    if not _is_whole(path, VOCABULARIES[name].sha256):
        message = f"the data of tiktoken's {name} on this machine, {path}, is damaged."
        raise CountUnavailable(message)
    try:
        return import_module("tiktoken").get_encoding(name)
    except ImportError as error:
        message = "install the extra 'tiktoken' of this package."
        raise CountUnavailable(message) from error


def _is_whole(path: Path, expected: str) -> bool:
    try:
        return sha256(path.read_bytes()).hexdigest() == expected
    except OSError:
        return False


def _cached_file(cache_key: str) -> Path | None:
    """Where tiktoken would find a file without a download; None where it would not."""
    default = Path(tempfile.gettempdir(), "data-gym-cache")
    chosen = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    if chosen == "":  # how its users turn the cache off
        return None
    path = Path(chosen or default, cache_key)
    return path if path.is_file() else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TiktokenCounter:
    """Counts texts as OpenAI's models read them, and messages of nothing but text.

    How calls, results, media and tool definitions are put to those models is not
    public, so that no tokenizer tells what they cost.
    """

    load: Callable[[str], Encoding] = local_encoding
    timeout_seconds: float = TIMEOUT_SECONDS

    def serves(self, model: str) -> bool:
        return lookup(model).provider == "openai"

    async def count(self, what: Countable) -> int:
        texts = (what.text,) if what.text else tuple(_texts(what))
        framing = MESSAGE_TOKENS * len(what.messages)
        name = "cl100k_base" if lookup(what.model).name in OLDER_MODELS else "o200k_base"
        try:
            with anyio.fail_after(self.timeout_seconds):
                return framing + await to_thread.run_sync(
                    self._tokens, name, texts, abandon_on_cancel=True
                )
        except TimeoutError as error:
            told = f"the tokenizer took more than {self.timeout_seconds:g} s."
            raise CountUnavailable(told) from error

    def _tokens(self, name: str, texts: Sequence[str]) -> int:
        encoding = self.load(name)
        return sum(len(encoding.encode_ordinary(piece)) for text in texts for piece in pieces(text))


def pieces(text: str) -> Iterator[str]:
    """A text in parts of bounded length, cut before a space where there is one.

    A space begins a token, so that the parts have as many as the whole.
    """
    start = 0
    while len(text) - start > PIECE_CHARS:
        cut = text.rfind(" ", start + 1, start + PIECE_CHARS)
        end = cut if cut > 0 else start + PIECE_CHARS
        yield text[start:end]
        start = end
    yield text[start:]


def _texts(what: Countable) -> Iterator[str]:
    if what.tools:
        raise CountUnavailable(NOT_PUBLIC)
    for message in what.messages:
        yield from _message_texts(message)


def _message_texts(message: Message) -> Iterator[str]:
    for block in message.blocks:
        text = block.get("text")
        if block.get("type") != "text" or not isinstance(text, str):
            raise CountUnavailable(NOT_PUBLIC)
        yield text


NOT_PUBLIC = "how this model is given tools, calls, results and media is not public."
