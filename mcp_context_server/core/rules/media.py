"""Rules about images, documents, search results and citations."""

import base64
import binascii
from collections.abc import Iterator, Mapping

from mcp_context_server.core.rules.request import Fault, Request, Site, Wire, list_of, object_of
from mcp_context_server.core.tokens.images import base64_data, image_size, pdf_pages

IMAGE_FORMATS: Mapping[str, tuple[int, bytes]] = {
    "image/jpeg": (0, b"\xff\xd8\xff"),
    "image/png": (0, b"\x89PNG"),
    "image/gif": (0, b"GIF8"),
    "image/webp": (8, b"WEBP"),
}
"""The formats taken, and the bytes that tell them, after so many others."""

SNIFFED_CHARS = 24
"""How much base64 is decoded to tell a format."""


def check_media(request: Request) -> Iterator[Fault]:
    """Images and documents are few, small and what they say they are."""
    images, documents = request.everywhere("image"), request.everywhere("document")
    for site in images:
        yield from _check_image(request, site, many=len(images) > request.terms.traits.many_images)
    for site in documents:
        yield from _check_document(request, site)
    most = request.terms.traits.max_media
    for site in sorted([*images, *documents], key=_position)[:-most] if most else ():
        what = f"more than {most} images and documents: remove the oldest"
        yield Fault("R55", site.path, what)


def _check_image(request: Request, site: Site, *, many: bool) -> Iterator[Fault]:
    source, traits = object_of(site.block.get("source")), request.terms.traits
    if source.get("type") != "base64":
        return
    path, data = f"{site.path}.source", base64_data(site.block)
    if len(data) > traits.max_image_base64_chars:
        most = traits.max_image_base64_chars
        yield Fault("R52", f"{path}.base64", f"{len(data)} bytes are more than {most}: shrink it")
    if wrong := _wrong_format(site.block):
        yield Fault("R57", f"{path}.base64.media_type", wrong)
        return
    side = max(image_size(site.block) or (0, 0))
    if side > traits.max_image_side_px:
        most = traits.max_image_side_px
        yield Fault("R53", path, f"{side} pixels are more than {most}: scale it down")
    elif many and side > traits.max_side_of_many_px:
        most, few = traits.max_side_of_many_px, traits.many_images
        what = f"with more than {few} images each side is at most {most} pixels: this has {side}"
        yield Fault("R54", path, what)


def _wrong_format(block: Wire) -> str | None:
    media_type = object_of(block.get("source")).get("media_type")
    true = true_format(block)
    if not isinstance(media_type, str) or media_type not in IMAGE_FORMATS:
        return f"must be one of {', '.join(IMAGE_FORMATS)}"
    return f"the bytes are {true}: say so" if true not in (None, media_type) else None


def true_format(block: Wire) -> str | None:
    """The media type that an image's bytes tell, if they tell one."""
    try:
        head = base64.b64decode(base64_data(block)[:SNIFFED_CHARS])
    except (binascii.Error, ValueError):
        return None
    told = (name for name, (at, sign) in IMAGE_FORMATS.items() if head.startswith(sign, at))
    return next(told, None)


def _check_document(request: Request, site: Site) -> Iterator[Fault]:
    if site.role == "assistant" and len(site.at) == 1:
        what = "a document can't stand in an assistant message: put it in a user's"
        yield Fault("R22", site.path, what)
    source = object_of(site.block.get("source"))
    if source.get("type") == "base64" and source.get("media_type") == "application/pdf":
        pages, most = pdf_pages(site.block) or 0, request.terms.traits.max_pdf_pages
        if pages > most:
            what = f"{pages} pages are more than {most}: send fewer"
            yield Fault("R56", f"{site.path}.source.base64.data", what)


def check_citations(request: Request) -> Iterator[Fault]:
    """Citations are on for all or for none, and search results come among their own."""
    for kind in ("document", "search_result"):
        cited = [(site, _cites(site)) for site in request.everywhere(kind)]
        if len({on for _, on in cited}) > 1:
            what = f"citations are on for this {kind} and not for all: make them alike"
            yield from (Fault("R58", site.path, what) for site, on in cited if on)
        if any(on for _, on in cited) and _has_format(request):
            yield Fault("R58", "output_config.format", "not together with citations: drop one")
    holders = {(site.message, site.at[:1]) for site in request.nested.get("search_result", ())}
    for site in request.of_kind("tool_result") if holders else ():
        kinds = {_kind(inner) for inner in list_of(site.block.get("content"))}
        if (site.message, site.at) in holders and len(kinds) > 1:
            what = "a result with search results holds nothing else: take the rest out"
            yield Fault("R58", site.path, what)


def _kind(value: object) -> object:
    kind = object_of(value).get("type")
    return kind if isinstance(kind, str) else None


def _cites(site: Site) -> bool:
    return object_of(site.block.get("citations")).get("enabled") is True


def _has_format(request: Request) -> bool:
    return object_of(request.param("output_config")).get("format") is not None


def _position(site: Site) -> tuple[int, tuple[int, ...]]:
    return site.message, site.at
