"""What a model can take, costs, and needs, found by its name in any spelling.

The figures are in `models.toml`, which also names their sources.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import Any, Literal

Tokenizer = Literal["claude", "claude-4-7", "gpt-5", "gemini", "glm", "deepseek", "general"]

MILLION_TOKENS = 1_000_000
"""The window that a `[1m]` suffix or the 1M beta asks for."""

MILLION_BETA_PREFIX = "context-1m-"
"""How the beta flags begin that give some models the window of a million."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheTerms:
    """What caching a prompt costs, as multiples of the input price, and how long it lasts."""

    read: float
    write_5m: float
    write_1h: float
    min_tokens: int
    """A prefix shorter than this is silently not cached."""
    ttl_seconds: int
    long_ttl_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One family of models; a figure is the smaller one where sources differ."""

    name: str
    """The family that was matched; `unknown` where none was."""
    provider: str
    """Who makes the model, whoever serves it."""
    knows: bool
    """Whether the catalog lists it; if not, the window and output are defaults."""
    tokenizer: Tokenizer
    context_window: int
    default_max_output: int
    upper_max_output: int
    supports_prefill: bool
    """Whether the last message may be the assistant's."""
    supports_system_role: bool
    """Whether a message in the middle may have the role `system`."""
    binds_thinking: bool
    """Whether a thinking block is only valid after exactly the conversation it was made in."""
    max_media: int
    """Images and documents in one request."""
    thinking_types: tuple[str, ...]
    """Values of `thinking.type` that it takes; empty where it doesn't think."""
    supports_context_management: bool
    supports_tool_reference: bool
    supports_1m_beta: bool
    cache: CacheTerms
    input_price: float | None = None
    """Dollars per million tokens, here and below; None where not published."""
    output_price: float | None = None
    long_prompt_tokens: int | None = None
    """A prompt above this, cached tokens included, is billed whole at the prices below."""
    long_input_price: float | None = None
    long_output_price: float | None = None


def lookup(model: str) -> Model:
    """What the catalog knows of a model, by any spelling of its name; never raises.

    A Claude that isn't listed has a window of 200,000, any other model 128,000, and
    both 32,000 of output, 64,000 at most.
    """
    return _lookup(model[:_LONGEST_NAME])


def has_1m_suffix(model: str) -> bool:
    """Whether a name asks for the window of a million, as in `claude-sonnet-4-5[1m]`."""
    return model[-_LONGEST_NAME:].rstrip().lower().endswith("[1m]")


def families() -> Mapping[str, Model]:
    """Every family of the catalog, by name."""
    return _catalog()[0]


_LONGEST_NAME = 300
_DECIMAL_P = re.compile(r"(?<=\d)p(?=\d)")
_WORD_THEN_NUMBER = re.compile(r"(?<![^a-z-])([a-z]+)(?=\d)")
_SEPARATORS = re.compile(r"[^a-z0-9]+")
_VERSION_PART = re.compile(r"-\d{1,2}-")


@lru_cache(maxsize=512)
def _lookup(model: str) -> Model:
    found, patterns = _catalog()
    name = f"-{_normalise(model)}-"
    for pattern, family in patterns:
        if _stands_in(pattern, name, exact=found[family].knows):
            return found[family]
    return found["unknown"]


def _normalise(name: str) -> str:
    """A name as its words and numbers, joined by dashes: `Llama3.1` is `llama-3-1`."""
    name = _SEPARATORS.sub("-", _DECIMAL_P.sub("-", name.lower()))
    return _WORD_THEN_NUMBER.sub(r"\1-", name).strip("-")


def _stands_in(pattern: str, name: str, *, exact: bool) -> bool:
    """Whether a pattern stands in a name, whole words only.

    An exact one is not followed by a further part of a version: `opus-4` is not
    `opus-4-9`, but it is `opus-4-20250514`.
    """
    start = name.find(pattern)
    if start < 0:
        return False
    return not exact or not _VERSION_PART.match(name, start + len(pattern) - 1)


@cache
def _catalog() -> tuple[dict[str, Model], tuple[tuple[str, str], ...]]:
    """The families by name, and the patterns: known families first, the longest first."""
    text = (
        resources.files("mcp_context_server.core")
        .joinpath("models.toml")
        .read_text(encoding="utf-8")
    )
    table = tomllib.loads(text)
    rows: dict[str, dict[str, Any]] = table["family"]
    models = {name: _model(name, rows, table["defaults"]) for name in rows}
    patterns = {
        (f"-{_normalise(spelling)}-", name)
        for name, row in rows.items()
        for spelling in row["match"]
    }
    order = sorted(patterns, key=lambda p: (not models[p[1]].knows, -len(p[0]), p))
    return models, tuple(order)


def _model(name: str, rows: Mapping[str, dict[str, Any]], defaults: dict[str, Any]) -> Model:
    fields = dict(defaults)
    for row in reversed(list(_ancestry(name, rows))):
        fields |= row
    # Whether a family is listed is its own affair, never inherited.
    fields["knows"] = rows[name].get("known", True)
    fields["cache"] = CacheTerms(**fields["cache"])
    fields["thinking_types"] = tuple(fields["thinking_types"])
    for key in ("match", "like", "known"):
        fields.pop(key, None)
    return Model(name=name, **fields)


def _ancestry(name: str, rows: Mapping[str, dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """A family's row, then the row it is like, and so on."""
    row = rows[name]
    yield row
    if "like" in row:
        yield from _ancestry(row["like"], rows)
