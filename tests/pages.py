"""The pages of the documentation, taken apart: their fenced blocks, links, anchors and names."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parent.parent

_FENCE = re.compile(r"^(`{3,})([^\n`]*)\n(.*?)^\1[ \t]*$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\[\]]*\]\(([^()\s]+)\)")
_HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)
_CODE = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, the words behind that, and its text."""

    language: str
    words: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Page:
    path: Path

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @property
    def source(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def blocks(self) -> list[Block]:
        fences = _FENCE.finditer(self.source)
        found = ((fence[2].split(), fence[3]) for fence in fences)
        return [Block(i[0] if i else "", tuple(i[1:]), text) for i, text in found]

    @property
    def prose(self) -> str:
        """The page without its fenced blocks."""
        return _FENCE.sub("", self.source)

    @property
    def links(self) -> list[str]:
        return [match[1] for match in _LINK.finditer(self.prose)]

    @property
    def anchors(self) -> set[str]:
        """What `#…` may name on this page, as GitHub makes it of the headings."""
        return {_slug(heading[1]) for heading in _HEADING.finditer(self.prose)}

    @property
    def codes(self) -> list[str]:
        """What stands between single backticks."""
        return _CODE.findall(self.prose)


def _slug(heading: str) -> str:
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def pages() -> Iterator[Page]:
    """README, changelog, and everything below `docs/` and `examples/`."""
    below = ((ROOT / place).rglob("*.md") for place in ("docs", "examples"))
    for path in sorted((*ROOT.glob("*.md"), *chain.from_iterable(below))):
        yield Page(path)
