"""The fitted prices of text and media, by tokenizer family, from `coefficients.json`.

`benchmarks/fit_tokens.py` writes that file from usage figures that providers
reported for real conversations.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, get_args

from mcp_context_server.core.tokens.text_price import KINDS, TextPrice

Family = Literal["claude", "claude-4-7", "gpt-5", "gemini", "glm", "deepseek", "general"]
"""Tokenizer families: `claude` up to 4.6, `claude-4-7` since; `general` is any other."""

FAMILIES: tuple[Family, ...] = get_args(Family)

Class = Literal[
    "user",
    "result",
    "text",
    "thinking",
    "tool_use",
    "image",
    "document",
    "system",
    "tools",
    "other",
]
"""What tokens are counted as; `text` is the assistant's."""

CLASSES: tuple[Class, ...] = get_args(Class)


@dataclass(frozen=True, slots=True)
class ImagePrice:
    """Tokens of a picture: by its area, after it was scaled down to the longest edge."""

    pixels_per_token: float
    longest_edge_pixels: float
    most_tokens: float

    def tokens(self, width: int, height: int) -> float:
        scale = min(1.0, self.longest_edge_pixels / max(width, height))
        area = max(1.0, width * scale) * max(1.0, height * scale)
        return min(max(1.0, area / self.pixels_per_token), self.most_tokens)


@dataclass(frozen=True, slots=True)
class Prices:
    """What one family's tokenizer makes of things, in tokens."""

    text: Mapping[Class, TextPrice]
    """By the class that the text is of."""
    hidden_character: float
    """A character of thought that is not shown but sealed in a signature."""
    call: float
    """The framing of a call: its id, tags, and what the host adds unseen."""
    result: float
    """The framing of a result."""
    message: float
    pdf_page: float
    """Its text and its picture."""
    image: ImagePrice
    default_image: float
    """A picture of unknown size."""
    default_image_noise: float
    """Standard error of that, in tokens."""
    default_document: float
    """A document of unknown length."""
    default_document_noise: float
    spread_fraction: float
    """Standard error that all text of a conversation shares, as a share of its tokens."""
    noise_fraction: float
    """Standard error of each piece on its own, as a share of its tokens."""
    noise: float
    """Standard error of each message on its own, in tokens."""


@cache
def prices(family: str) -> Prices:
    """The prices of a family; those of `general` for a name that nobody fitted."""
    data = _data()["families"]
    return _prices(data[family if family in data else "general"])


@cache
def _data() -> Mapping[str, Any]:
    path = files("mcp_context_server.core.tokens") / "coefficients.json"
    return json.loads(path.read_text(encoding="utf-8"))


def _prices(entry: Mapping[str, Any]) -> Prices:
    scales: Mapping[str, float] = entry["class_scales"]
    kinds = {kind: float(entry["kinds"][kind]) for kind in KINDS}
    texts: dict[Class, TextPrice] = {
        name: _scaled(kinds, scales.get(name, 1.0)) for name in CLASSES
    }
    # The marks of a JSON schema run together: `":{"` is one token.
    schema = TextPrice.of_kinds({**kinds, "punctuation": float(entry["schema_punctuation"])})
    return Prices(
        text={**texts, "tools": schema},
        image=ImagePrice(**entry["image"]),
        **{name: float(entry[name]) for name in _NUMBERS},
    )


def _scaled(kinds: Mapping[str, float], scale: float) -> TextPrice:
    return TextPrice.of_kinds({kind: tokens * scale for kind, tokens in kinds.items()})


_NUMBERS = (
    "hidden_character",
    "call",
    "result",
    "message",
    "pdf_page",
    "default_image",
    "default_image_noise",
    "default_document",
    "default_document_noise",
    "spread_fraction",
    "noise_fraction",
    "noise",
)
