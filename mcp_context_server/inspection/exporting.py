"""A conversation in other forms: for the Messages API, for chat completions, or to be read.

The two forms for programs are exact: what they hold is what the conversation holds. The
two for people mask key-shaped strings.
"""

import html
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from mcp_context_server.core.messages import (
    Block,
    Message,
    Messages,
    is_call,
    is_result,
    is_thinking,
    nested_blocks,
)
from mcp_context_server.core.redact import redact
from mcp_context_server.core.session import Session

Form = Literal["anthropic", "openai", "markdown", "html"]


@dataclass(frozen=True, slots=True)
class Conversation:
    """What is exported: the messages, and what goes with them."""

    messages: Messages
    system: str | Sequence[Block] | None = None
    model: str = ""
    title: str = "Conversation"

    @classmethod
    def of(cls, session: Session, *, title: str) -> "Conversation":
        """A session as its model gets it now."""
        return cls(session.view, session.settings.system, session.model, title)


def exported(conversation: Conversation, form: Form, *, mask: bool = True) -> str:
    """The conversation in a form; `mask` is for the forms that people read."""
    return _FORMS[form](conversation, mask)


def anthropic_request(conversation: Conversation) -> dict[str, Any]:
    """What a request to the Messages API takes of it: the blocks as they came."""
    return {
        **_named(conversation),
        **({"system": conversation.system} if conversation.system else {}),
        "messages": [message.wire() for message in conversation.messages],
    }


def openai_request(conversation: Conversation) -> dict[str, Any]:
    """What a chat completion takes of it; calls that nothing answered are answered so."""
    # Many modules, which those who only read a conversation do without.
    from mcp_context_server.core.rules import repair
    from mcp_context_server.transcripts.openai_chat import from_messages

    messages, _ = repair(conversation.messages)
    system = _system_text(conversation.system)
    first = [{"role": "system", "content": system}] if system else []
    return {**_named(conversation), "messages": [*first, *from_messages(messages)]}


def _named(conversation: Conversation) -> dict[str, Any]:
    return {"model": conversation.model} if conversation.model else {}


def _system_text(system: str | Sequence[Block] | None) -> str:
    if isinstance(system, str) or system is None:
        return system or ""
    return "\n\n".join(str(block.get("text", "")) for block in system)


def _as_json(request: Mapping[str, Any]) -> str:
    """JSON text; escaped throughout only where it holds what UTF-8 can't."""
    text = json.dumps(request, ensure_ascii=False, indent=1)
    try:
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(request, indent=1)
    return text + "\n"


# ── what a person reads ──────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Part:
    """One block as it is shown: words, or something to be opened."""

    kind: Literal["text", "thinking", "call", "result", "image", "other"]
    title: str
    text: str
    image: str = ""
    """A picture as a data URL."""


def parts_of(message: Message) -> Iterator[Part]:
    for block in message.blocks:
        yield from _parts(block)


def _parts(block: Block) -> Iterator[Part]:
    kind = block.get("type")
    if is_call(block):
        given = json.dumps(block.get("input"), ensure_ascii=False, indent=2)
        yield Part("call", str(block.get("name", "")), given)
    elif is_result(block):
        yield from _result(block)
    elif is_thinking(block):
        yield Part("thinking", "Thinking", str(block.get("thinking") or "(not shown)"))
    elif kind == "text":
        yield Part("text", "", str(block.get("text", "")))
    elif kind in ("image", "document"):
        yield Part("image", str(kind), _media_words(block), _picture(block))
    else:
        yield Part("other", str(kind), json.dumps(block, ensure_ascii=False, indent=2))


def _result(block: Block) -> Iterator[Part]:
    title = f"Result of {block['tool_use_id']}" + (" (failed)" if block.get("is_error") else "")
    content = block.get("content")
    if isinstance(content, str):
        yield Part("result", title, content)
        return
    for inner in nested_blocks(block):
        for part in _parts(inner):
            yield Part("result", title, part.text, part.image)


_PICTURES = re.compile(r"image/(?:png|jpeg|gif|webp)")
_BASE64 = re.compile(r"[A-Za-z0-9+/=\s]*")


def _picture(block: Block) -> str:
    given = _source(block)
    media, data = given.get("media_type"), given.get("data")
    if not (isinstance(media, str) and isinstance(data, str) and _PICTURES.fullmatch(media)):
        return ""
    return f"data:{media};base64,{data}" if _BASE64.fullmatch(data) else ""


def _source(block: Block) -> Mapping[str, Any]:
    source = block.get("source")
    return cast("Mapping[str, Any]", source) if isinstance(source, dict) else {}


def _media_words(block: Block) -> str:
    given = _source(block)
    size = len(str(given.get("data", "")))
    return f"[{block.get('type')}: {given.get('media_type', 'unknown')}, {size:,} characters]"


def _heading(number: int, message: Message) -> str:
    role = "Host" if message.role == "user" and message.is_meta else message.role.capitalize()
    only_results = bool(message.blocks) and all(map(is_result, message.blocks))
    return f"{number}. {'Results' if only_results else role}"


# ── Markdown ─────────────────────────────────────────────────────────────────

_OUR_HEADING = re.compile(r"^(#{1,2} )", re.MULTILINE)


def _markdown(conversation: Conversation, mask: bool) -> str:
    pieces = [f"# {' '.join(conversation.title.split())}"]
    if system := _system_text(conversation.system):
        pieces += ["## System", _fenced(system)]
    for number, message in enumerate(conversation.messages, start=1):
        when = f" · {message.timestamp}" if message.timestamp else ""
        pieces.append(f"## {_heading(number, message)}{when}")
        pieces += map(_markdown_part, parts_of(message))
    return redact("\n\n".join(pieces), enabled=mask) + "\n"


def _markdown_part(part: Part) -> str:
    if part.kind == "text":
        # The conversation's own headings stay below ours.
        return _OUR_HEADING.sub(r"\\\1", part.text)
    if part.kind == "image":
        return f"*{part.text}*"
    return f"**{part.title}**\n\n{_fenced(part.text, 'json' if part.kind == 'call' else '')}"


def _fenced(text: str, language: str = "") -> str:
    """Text in a fence that it cannot close."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


# ── HTML ─────────────────────────────────────────────────────────────────────

_STYLE = """
:root { color-scheme: light dark; --edge: #8884; --faint: #8881 }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem }
article { border-left: 3px solid var(--edge); padding: 0 0 0 1rem; margin: 1.5rem 0 }
article.assistant { border-color: #d97706 } article.user { border-color: #2563eb }
h2 { font-size: .9rem; margin: 0 } time { font-weight: normal; opacity: .7 }
.text, pre { white-space: pre-wrap; overflow-wrap: anywhere } .text { margin: .5rem 0 }
pre { background: var(--faint); border-radius: 6px; padding: .7rem; max-height: 30rem;
  overflow: auto; font-size: .85rem }
summary { cursor: pointer; font-size: .85rem; overflow-wrap: anywhere } img { max-width: 100% }
"""

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<h1>{title}</h1>
<p>{count} messages{model}</p>
{body}
</body>
</html>
"""


def _html(conversation: Conversation, mask: bool) -> str:
    """A page of its own: no script, nothing loaded, everything from the conversation escaped."""

    def shown(text: str) -> str:
        return html.escape(redact(text, enabled=mask))

    articles = [
        _article(number, message, shown)
        for number, message in enumerate(conversation.messages, start=1)
    ]
    system = _system_text(conversation.system)
    first = [_details("System", system, shown)] if system else []
    return _PAGE.format(
        title=shown(conversation.title),
        style=_STYLE,
        count=f"{len(conversation.messages):,}",
        model=f" · {shown(conversation.model)}" if conversation.model else "",
        body="\n".join((*first, *articles)),
    )


def _article(number: int, message: Message, shown: Callable[[str], str]) -> str:
    when = f" <time>{shown(message.timestamp)}</time>" if message.timestamp else ""
    parts = "\n".join(_html_part(part, shown) for part in parts_of(message))
    head = f"<h2>{html.escape(_heading(number, message))}{when}</h2>"
    return f'<article class="{message.role}" id="m{number}">\n{head}\n{parts}\n</article>'


def _html_part(part: Part, shown: Callable[[str], str]) -> str:
    if part.image:
        return f'<img src="{html.escape(part.image)}" alt="{shown(part.text)}">'
    if part.kind == "text":
        return f'<div class="text">{shown(part.text)}</div>'
    return _details(part.title, part.text, shown)


def _details(title: str, text: str, shown: Callable[[str], str]) -> str:
    return f"<details><summary>{shown(title)}</summary><pre>{shown(text)}</pre></details>"


_FORMS: Mapping[Form, Callable[[Conversation, bool], str]] = {
    "anthropic": lambda conversation, _: _as_json(anthropic_request(conversation)),
    "openai": lambda conversation, _: _as_json(openai_request(conversation)),
    "markdown": _markdown,
    "html": _html,
}
