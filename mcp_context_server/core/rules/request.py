"""What the rules look at: a request, indexed once, and what the model can take."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from mcp_context_server.core.messages import Block
from mcp_context_server.core.models import Model
from mcp_context_server.core.rules.originals import Originals

Wire = Mapping[str, Any]
"""A JSON object as it is sent."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A rule that a request breaks."""

    rule: str
    """The rule's id: a key of `RULES`."""
    path: str
    """Where, in the API's own form: `messages.3.content.0`."""
    message: str
    """What is wrong, and what to do about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTraits:
    """What the rules must know of a model; the defaults suit a model nothing is known of."""

    supports_prefill: bool = True
    """Whether a request may end with an assistant message."""
    supports_system_role: bool = True
    """Whether `role: "system"` messages may stand in the conversation."""
    supports_context_management: bool = True
    """Whether the API edits the context of this model itself."""
    supports_tool_reference: bool = True
    """Whether results may hold `tool_reference` blocks."""
    binds_thinking: bool = False
    """Whether a thinking block is valid only after exactly the conversation it was made in."""
    requires_alternation: bool = False
    """Whether the backend refuses two messages of one role in a row instead of joining them."""
    requires_tools: bool = False
    """Whether the backend refuses tool blocks in a request that defines no tools."""
    thinking_types: tuple[str, ...] = ("enabled", "disabled", "adaptive", "between_tools")
    """The values that `thinking.type` may have."""
    max_media: int = 100
    """Images and documents in one request: 100, or 600 on models with a window of 1M."""
    max_pdf_pages: int = 100
    """Pages of one PDF: 100, or 600 on models with a window of 1M."""
    max_image_base64_chars: int = 5 * 1024 * 1024
    """Length of an image's base64: 5 MB everywhere, although some endpoints take 10 MB."""
    max_image_side_px: int = 8_000
    """Width and height of an image."""
    many_images: int = 20
    """More images than this in one request lower the limit of each one's sides."""
    max_side_of_many_px: int = 2_000
    """Width and height of an image in a request of many."""
    max_messages: int = 100_000
    """Messages in one request."""
    max_breakpoints: int = 4
    """Blocks with `cache_control` over tools, system and messages, the automatic one included."""
    max_name_chars: int = 64
    """Length of a tool's name."""
    max_deferred_tools: int = 10_000
    """Tools with `defer_loading` in one request."""
    min_thinking_budget_tokens: int = 1_024
    """The smallest `thinking.budget_tokens`."""
    max_instructions_chars: int = 16_384
    """Length of `compaction.instructions`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What messages are judged by."""

    traits: ModelTraits = ModelTraits()
    body: Wire | None = None
    """The rest of the request's JSON, or None where only the messages are known."""
    betas: Collection[str] | None = None
    """The beta headers, or None where they are not known."""
    originals: Originals | None = None
    """What was received, where that is known."""
    open_tail: bool = False
    """Whether the conversation is a stored one, whose last round may still be open."""
    earlier_calls: Collection[str] | None = None
    """Ids of calls in what stands before the first message; None where nothing does."""
    stamp: str = ""
    """What the names that a repair makes end with, so that no two repairs make the same."""


def traits_of(model: Model) -> ModelTraits:
    """What the rules must know of a model of the catalog."""
    return ModelTraits(
        supports_prefill=model.supports_prefill,
        supports_system_role=model.supports_system_role,
        supports_context_management=model.supports_context_management,
        supports_tool_reference=model.supports_tool_reference,
        binds_thinking=model.binds_thinking,
        thinking_types=model.thinking_types,
        max_media=model.max_media,
        max_pdf_pages=model.max_media,
    )


class Site(NamedTuple):
    """A block and where it stands."""

    message: int
    at: tuple[int, ...]
    """Indexes into content and, for a block inside a result, into that; empty for a string."""
    role: str
    block: Block

    @property
    def path(self) -> str:
        return f"messages.{self.message}.content" + ".content".join(f".{n}" for n in self.at)


class Turned(NamedTuple):
    """A message as the rules see it."""

    role: str
    """Empty where the message is malformed."""
    blocks: list[Site]
    """What is a block of its content; a non-empty string is one text block."""
    message: Wire

    @property
    def answers(self) -> bool:
        """Whether it is a user's and holds results of client calls and nothing else."""
        only = all(site.block["type"] == "tool_result" for site in self.blocks)
        return self.role == "user" and only and bool(self.blocks)

    @property
    def content(self) -> object:
        return self.message.get("content")


@dataclass(frozen=True, slots=True)
class Request:
    """A request, walked once: its messages, and its blocks by type."""

    terms: Terms
    messages: list[Turned] = field(default_factory=list[Turned])
    sites: dict[str, list[Site]] = field(default_factory=lambda: defaultdict[str, list[Site]](list))
    """The blocks of each type that stand directly in a message, in order."""
    nested: dict[str, list[Site]] = field(
        default_factory=lambda: defaultdict[str, list[Site]](list)
    )
    """The blocks of each type that stand in another block's content, in order."""
    marked: list[Site] = field(default_factory=list[Site])
    """The blocks that carry `cache_control`, in order."""
    malformed: list[Fault] = field(default_factory=list[Fault])
    """What could not be read as messages and blocks (R0), or has foreign keys (R21)."""

    def of_kind(self, *kinds: str) -> list[Site]:
        """The blocks of these types that stand directly in a message, in order."""
        found = [site for kind in kinds for site in self.sites.get(kind, ())]
        return sorted(found, key=_position) if len(kinds) > 1 else found

    def everywhere(self, *kinds: str) -> list[Site]:
        """The blocks of these types, those inside other blocks included, in order."""
        inner = (site for kind in kinds for site in self.nested.get(kind, ()))
        return sorted([*self.of_kind(*kinds), *inner], key=_position)

    def last(self, role: str) -> int:
        """The index of the last message with a role, or -1."""
        backwards = range(len(self.messages) - 1, -1, -1)
        return next((i for i in backwards if self.messages[i].role == role), -1)

    @property
    def tail(self) -> int:
        """The index of the last response when only results follow it, or -1."""
        last = self.last("assistant")
        rest = self.messages[last + 1 :]
        return last if all(message.answers for message in rest) else -1

    def param(self, name: str) -> Any:
        """A top-level field of the request, or None."""
        return None if self.terms.body is None else self.terms.body.get(name)

    def objects(self, name: str) -> list[tuple[int, Wire]]:
        """The objects in a top-level list of the request, with their indexes."""
        return list(_objects(self.param(name)))


def text_of(value: object) -> str:
    """A value when it is a string, else nothing."""
    return value if isinstance(value, str) else ""


def object_of(value: object) -> Wire:
    """A value when it is an object, else an empty one."""
    return cast("Wire", value) if isinstance(value, Mapping) else {}


def list_of(value: object) -> Sequence[object]:
    """A value when it is a list, else an empty one."""
    return cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()


def _objects(value: object) -> Iterator[tuple[int, Wire]]:
    for index, item in enumerate(list_of(value)):
        if isinstance(item, Mapping):
            yield index, cast("Wire", item)


def _position(site: Site) -> tuple[int, tuple[int, ...]]:
    return site.message, site.at
