"""What pictures and documents cost: by their size in pixels and pages, never by their bytes."""

import binascii
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from mcp_context_server.core.messages import Block, Message, is_result, nested_blocks

HEADER_BYTES = 65_536
"""How much of a picture is decoded in search of its size."""


def image_size(block: Mapping[str, Any]) -> tuple[int, int] | None:
    """Width and height in pixels of an image block, from its data's header.

    None where the picture is not at hand (a URL, a file id) or is no PNG, JPEG,
    GIF or WebP. Knows the Messages API's form and OpenAI's data URLs.
    """
    head = _head(base64_data(block), HEADER_BYTES)
    for signature, offset, read in _FORMATS:
        if head.startswith(signature, offset):
            try:
                width, height = read(head)
            except (struct.error, IndexError):
                return None
            return (width, height) if width > 0 and height > 0 else None
    return None


def pdf_pages(block: Mapping[str, Any]) -> int | None:
    """The number of pages of a PDF document block, as far as its bytes tell; None if they don't."""
    data = _head(base64_data(block), PDF_BYTES)
    if not data.startswith(b"%PDF"):
        return None
    counts = [int(count) for count in _PAGE_COUNT.findall(data)]
    pages = max([*counts, len(_PAGE.findall(data))])
    return min(pages, MOST_PAGES) or None


PDF_BYTES = 8_388_608
"""How much of a PDF is decoded in search of its pages."""
MOST_PAGES = 1_000
_PAGE = re.compile(rb"/Type\s*/Page(?![a-zA-Z])")
_PAGE_COUNT = re.compile(rb"/Count\s+(\d{1,4})(?!\d)")


def base64_data(block: Mapping[str, Any]) -> str:
    """The base64 data of a media block in either API's form; empty where it has none."""
    source = _mapping(block.get("source"))
    url = _mapping(block.get("image_url")).get("url", block.get("image_url"))
    for value in (source.get("data"), block.get("data"), url, source.get("url")):
        if isinstance(value, str) and value:
            if value.startswith("data:"):
                return value[value.find(",") + 1 :] if "," in value[:256] else ""
            if not value.startswith(("http:", "https:", "file:")):
                return value
    return ""


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _head(data: str, size: int) -> bytes:
    """The first bytes of base64 data; what does not decode is left out."""
    encoded = data[: size // 3 * 4]
    encoded = encoded[: len(encoded) // 4 * 4]
    try:
        return binascii.a2b_base64(encoded)
    except (binascii.Error, ValueError):
        return b""


def _png(head: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from(">II", head, 16)
    return width, height


def _gif(head: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from("<HH", head, 6)
    return width, height


def _webp(head: bytes) -> tuple[int, int]:
    match head[12:16]:
        case b"VP8X":
            return (
                1 + int.from_bytes(head[24:27], "little"),
                1 + int.from_bytes(head[27:30], "little"),
            )
        case b"VP8L":
            (bits,) = struct.unpack_from("<I", head, 21)
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 ":
            width, height = struct.unpack_from("<HH", head, 26)
            return width & 0x3FFF, height & 0x3FFF
        case _:
            return 0, 0


def _jpeg(head: bytes) -> tuple[int, int]:
    """Walk the segments to the frame header (SOF0 to SOF15 but DHT, JPG and DAC)."""
    at = 2
    while at + 9 <= len(head):
        marker = head[at + 1]
        if head[at] != 0xFF or marker == 0xFF:
            at += 1
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", head, at + 5)
            return width, height
        else:
            at += 2 + max(2, int.from_bytes(head[at + 2 : at + 4]))
    return 0, 0


_FORMATS = (
    (b"\x89PNG\r\n\x1a\n", 0, _png),
    (b"\xff\xd8\xff", 0, _jpeg),
    (b"GIF8", 0, _gif),
    (b"WEBP", 8, _webp),
)


def is_document(block: Block) -> bool:
    return block.get("type") in ("document", "input_file", "file")


def is_image(block: Block) -> bool:
    return block.get("type") in ("image", "image_url", "input_image")


def is_media(block: Block) -> bool:
    return is_image(block) or is_document(block)


@dataclass(frozen=True, slots=True)
class Media:
    """How many images and documents there are, and how long their base64 is. Adds up."""

    count: int = 0
    chars: int = 0

    def __add__(self, other: "Media") -> "Media":
        return Media(self.count + other.count, self.chars + other.chars)

    def __sub__(self, other: "Media") -> "Media":
        return Media(self.count - other.count, self.chars - other.chars)


def media_of(message: Message) -> Media:
    """What a message holds of them, inside results too."""
    sizes = [len(base64_data(block)) for block in _media_blocks(message)]
    return Media(len(sizes), sum(sizes))


def _media_blocks(message: Message) -> Iterator[Block]:
    for block in message.blocks:
        if is_media(block):
            yield block
        elif is_result(block):
            yield from filter(is_media, nested_blocks(block))
