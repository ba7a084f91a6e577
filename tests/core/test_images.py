"""The size of a picture from its first bytes, and what it costs."""

import base64
import struct

import pytest
from conversations import image

from mcp_context_server.core.tokens.estimates import block_tokens
from mcp_context_server.core.tokens.images import image_size, pdf_pages


def picture(data: bytes, kind: str = "image/png") -> dict:
    encoded = base64.b64encode(data).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": encoded}}


def document(data: bytes) -> dict:
    return {**picture(data, "application/pdf"), "type": "document"}


EXIF = b"\xff\xe1" + struct.pack(">H", 2_000) + b"E" * 1_998
SIZE = struct.pack(">HBHH", 17, 8, 480, 640)
JPEG = b"\xff\xd8" + EXIF + b"\xff\xc4\x00\x04hh" + b"\xff\xff\xff\xc2" + SIZE + b"\0" * 20
GIF = b"GIF89a" + struct.pack("<HH", 640, 480) + b"\0\0\0"
VP8X = (
    b"RIFF\0\0\0\0WEBPVP8X" + b"\0" * 8 + (639).to_bytes(3, "little") + (479).to_bytes(3, "little")
)
VP8L = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + struct.pack("<I", 639 | 479 << 14)
VP8 = b"RIFF\0\0\0\0WEBPVP8 " + b"\0" * 7 + b"\x9d\x01\x2a" + struct.pack("<HH", 640, 480)


@pytest.mark.parametrize("data", [JPEG, GIF, VP8X, VP8L, VP8], ids=["jpeg", "gif", *"XL8"])
def test_the_header_of_each_format_tells_the_size(data: bytes):
    assert image_size(picture(data)) == (640, 480)


def test_a_png_tells_its_size_in_both_apis_forms():
    data = image(1200, 900)["source"]["data"]
    url = f"data:image/png;base64,{data}"
    assert image_size(image(1200, 900)) == (1200, 900)
    assert image_size({"type": "image_url", "image_url": {"url": url}}) == (1200, 900)
    assert image_size({"type": "input_image", "image_url": url}) == (1200, 900)


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image"},
        {"type": "image", "source": None},
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
        {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
        {"type": "image", "source": {"type": "base64", "data": "!!!"}},
        {"type": "image", "source": {"type": "base64", "data": "é" * 40}},
        picture(b"\x89PNG\r\n\x1a\n"),
        picture(b"\xff\xd8\xff" + b"\xff" * 50_000),
        picture(b"RIFF\0\0\0\0WEBPVP9 " + b"\0" * 30),
        picture(struct.pack("<6sHH", b"GIF89a", 0, 0)),
    ],
)
def test_a_picture_without_a_readable_header_has_no_size_but_a_price(block: dict):
    assert image_size(block) is None
    assert 500 < block_tokens(block, "user", "claude") < 3_000


@pytest.mark.requirement("TOK-2")
@pytest.mark.parametrize(
    ("family", "size", "tokens"),
    [
        ("claude", (451, 1996), 1_179),  # scaled down to 1,568 on its long edge
        ("claude-4-7", (451, 1996), 1_179),
        ("claude-4-7", (1280, 900), 1_518),
        ("claude", (4000, 3000), 1_568),
        ("claude-4-7", (4000, 3000), 4_784),
        ("claude", (64, 64), 9),
    ],
)
def test_a_picture_costs_its_area_up_to_the_models_limit(family: str, size: tuple, tokens: int):
    cost = block_tokens(image(*size), "user", family)
    assert cost == pytest.approx(tokens, rel=0.4)


@pytest.mark.requirement("TOK-2")
def test_base64_is_never_counted_as_text():
    heavy = base64.b64encode(base64.b64decode(image()["source"]["data"]) + b"\0" * 1_000_000)
    block = {**image(), "source": {**image()["source"], "data": heavy.decode()}}
    assert block_tokens(block, "user", "general") == block_tokens(image(), "user", "general")
    unknown = {"type": "hologram", "data": heavy.decode()}
    assert block_tokens(unknown, "user", "general") < 2_000


def test_a_pdf_is_counted_by_its_pages():
    pages = b"".join(b"%d 0 obj << /Type /Page >> endobj\n" % n for n in range(1, 4))
    tree = b"4 0 obj << /Type /Pages /Count 3 >> endobj\n"
    assert pdf_pages(document(b"%PDF-1.7\n" + pages + tree)) == 3
    assert pdf_pages(document(b"%PDF-1.7\n" + tree)) == 3
    assert pdf_pages(document(b"%PDF-1.7\n(compressed)")) is None
    assert pdf_pages(document(b"no pdf")) is None


def test_a_text_document_is_counted_as_its_text():
    held = {"type": "document", "source": {"type": "text", "data": "word " * 1_000}}
    assert 800 < block_tokens(held, "user", "gpt-5") < 1_600
