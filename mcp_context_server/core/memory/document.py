"""The session memory as a Markdown document, and back from one that a person edited.

The document has a heading and an italic line of description for each section. A line
of a section's text that would read as part of that frame gets a backslash, which is
taken off again on the way back, so that any text comes through as it was. A last line
names the version and a digest of each section as it was rendered: by it one can tell
what a person changed since, and what the session did.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from mcp_context_server.core.edits import SectionUpdate
from mcp_context_server.core.markers import MEMORY_HEADINGS
from mcp_context_server.core.memory.notes import SessionMemory

DESCRIPTIONS: Mapping[str, str] = {
    "Session Title": "What this session is about, in five to ten words; no filler.",
    "Current State": "What is being worked on now, what is left to do, and the next step.",
    "Task specification": "What the user asked for, with the design decisions and their reasons.",
    "Files and Functions": "The files that matter, what is in each, and why it matters.",
    "Workflow": "The commands that are usually run, in which order, and how to read their output.",
    "Errors & Corrections": "What went wrong and how it was mended; what the user corrected; "
    "what not to try again.",
    "Codebase and System Documentation": "The parts of the system and how they work together.",
    "Learnings": "What worked well, what did not, and what to avoid; nothing said elsewhere.",
    "Key results": "If the user asked for a result, such as an answer or a table, the whole of it.",
    "Worklog": "Step by step, what was tried and done; a very short line for each.",
}
"""The line under each heading: what belongs there."""

_DRAWN_START = "<!-- drawn from the transcript by the server -->"
_DRAWN_END = "<!-- end of what was drawn -->"
_STATE = "<!-- session memory: "


def render(memory: SessionMemory) -> str:
    """The document; `parse` gives back exactly its sections."""
    return "\n".join(_rendered(memory, name) for name in MEMORY_HEADINGS)


def render_section(memory: SessionMemory, name: str) -> str:
    """One section's text as it was given, with what was drawn from the transcript marked."""
    section = memory.section(name)
    return f"{section.text}\n{_drawn(section.drawn)}" if section.drawn else section.text


def summary_of(memory: SessionMemory) -> str:
    """The sections with content, as the summary that takes the place of old messages."""
    filled = (name for name in MEMORY_HEADINGS if any(_texts(memory, name)))
    return "\n".join(f"## {name}\n\n{_body(memory, name)}\n" for name in filled)


def _texts(memory: SessionMemory, name: str) -> tuple[str, str]:
    section = memory.section(name)
    return section.text.strip(), section.drawn


def _rendered(memory: SessionMemory, name: str) -> str:
    body = _body(memory, name)
    return f"# {name}\n_{DESCRIPTIONS[name]}_\n" + (f"\n{body}\n" if body else "")


def _body(memory: SessionMemory, name: str) -> str:
    section = memory.section(name)
    parts = (escape(section.text), _drawn(escape(section.drawn)) if section.drawn else "")
    return "\n".join(filter(None, parts))


def _drawn(text: str) -> str:
    return f"{_DRAWN_START}\n{text}\n{_DRAWN_END}"


# ── lines that would read as structure ───────────────────────────────────────

_FRAME = "|".join(
    (
        r"#(?=[ \t\r\n]|\Z)",
        r"=+[ \t]*(?=[\r\n]|\Z)",
        *(re.escape(f"_{text}_") for text in DESCRIPTIONS.values()),
        r"<!--",
    )
)
_LINE = r"(?<![^\n\r])([ \t]{0,3})"
_READS_AS_FRAME = re.compile(rf"{_LINE}(?=\\*(?:{_FRAME}))")
_ESCAPED = re.compile(rf"{_LINE}\\(?=\\*(?:{_FRAME}))")


def escape(text: str) -> str:
    """Text in which no line reads as a first-level heading, a description or a marker of ours."""
    return _READS_AS_FRAME.sub(r"\1\\", text)


def unescape(text: str) -> str:
    """The text that `escape` was given."""
    return _ESCAPED.sub(r"\1", text)


# ── the mirrored file ────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Document:
    """What a file says: each section's own text, and what it was rendered from."""

    sections: Mapping[str, str]
    """Only those that are certain to be whole."""
    drawn: Mapping[str, str]
    digests: Mapping[str, str]
    """By section, as it was when the file was written; empty where the file does not say."""
    session_id: str
    version: int
    is_whole: bool
    """Whether every section and the last line are there."""


def render_file(memory: SessionMemory, session_id: str) -> str:
    """The document with a last line by which a person's changes can be told."""
    digests = {name: _digest(memory.section(name).text) for name in MEMORY_HEADINGS}
    digests |= {f"{name}*": _digest(memory.section(name).drawn) for name in MEMORY_HEADINGS}
    state = {"session_id": session_id, "version": memory.version, "sections": digests}
    told = json.dumps(state, separators=(",", ":")).replace(">", "\\u003e")
    return f"{render(memory)}\n{_STATE}{told} -->\n"


def parse(text: str) -> Document:
    """What a document says, whatever happened to it; never raises."""
    text, state = _state(text)
    bodies, last = _bodies(text)
    if state is None and last is not None:
        # A file that was cut anywhere shows it in its last section, which may be half of it.
        bodies.pop(last)
    parts = {name: _parted(body) for name, body in bodies.items()}
    told = state or {}
    digests = told.get("sections")
    return Document(
        sections={name: own for name, (own, _) in parts.items()},
        drawn={name: drawn for name, (_, drawn) in parts.items()},
        digests=_strings(digests),
        session_id=str(told.get("session_id", "")),
        version=told["version"] if isinstance(told.get("version"), int) else 0,
        is_whole=state is not None and set(parts) == set(MEMORY_HEADINGS),
    )


def _state(text: str) -> tuple[str, Mapping[str, Any] | None]:
    """The text before the last line, and what that line tells; None where there is none."""
    at = text.rfind(f"\n{_STATE}")
    line = text[at + 1 + len(_STATE) :].rstrip()
    if at < 0 or not line.endswith(" -->"):
        return text, None
    try:
        told = json.loads(line.removesuffix(" -->"))
    except (ValueError, RecursionError):
        return text, None
    return text[:at], cast("dict[str, Any]", told) if isinstance(told, dict) else None


def _strings(value: object) -> dict[str, str]:
    given = cast("dict[object, object]", value) if isinstance(value, dict) else {}
    return {k: v for k, v in given.items() if isinstance(k, str) and isinstance(v, str)}


_HEADINGS = {heading.casefold(): heading for heading in MEMORY_HEADINGS}
_HEADING_LINE = re.compile(r"^#[ \t]+[^\n]{1,80}$", re.MULTILINE)


def _bodies(text: str) -> tuple[dict[str, str], str | None]:
    """What stands under each heading, and the last one; a heading that comes twice adds up."""
    found = [
        (match.start(), match.end(), heading)
        for match in _HEADING_LINE.finditer(text)
        if (heading := _HEADINGS.get(" ".join(match[0].strip("# \t\r").split()).casefold()))
    ]
    bodies: dict[str, str] = {}
    ends = [*(start for start, _, _ in found[1:]), len(text) + 1]
    for (_, start, name), end in zip(found, ends, strict=False):
        body = _unframed(text[start + 1 : end - 1], name)
        bodies[name] = f"{bodies[name]}\n{body}" if bodies.get(name) else body
    return bodies, found[-1][2] if found else None


def _unframed(body: str, name: str) -> str:
    """A section's body without its description and the blank lines around it."""
    line, _, rest = body.partition("\n")
    described = line.strip() == f"_{DESCRIPTIONS[name]}_"
    body = rest if described else body
    return body.removeprefix("\n").removesuffix("\n")


def _parted(body: str) -> tuple[str, str]:
    """A section's own text, and the text between our markers."""
    start = _DRAWN_START_LINE.search(body)
    end = _DRAWN_END_LINE.search(body, start.end()) if start else None
    if start is None or end is None:
        return unescape(_DRAWN_END_LINE.sub("", _DRAWN_START_LINE.sub("", body))), ""
    before, drawn, after = body[: start.start()], body[start.end() : end.start()], body[end.end() :]
    own = before.removesuffix("\n") + (f"\n{after.lstrip()}" if after.strip() else "")
    return unescape(own), unescape(drawn.removeprefix("\n").removesuffix("\n"))


def _marker_line(marker: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![^\n\r]){re.escape(marker)}[ \t\r]*(?=\n|\Z)")


_DRAWN_START_LINE, _DRAWN_END_LINE = _marker_line(_DRAWN_START), _marker_line(_DRAWN_END)


# ── a person's changes ───────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Edited:
    """What a person changed in the file, as updates, and the sections both sides had changed."""

    updates: tuple[SectionUpdate, ...] = ()
    conflicts: tuple[str, ...] = ()


BOTH_KEPT = "> Written in the file at the same time; both texts are kept:"


def changes_in(document: Document, memory: SessionMemory) -> Edited:
    """A person's changes, as they apply to the memory as it stands now.

    Where only the file changed since it was written, its text counts; where only the
    memory did, that does; where both did, both texts stay, the person's last.
    """
    updates, conflicts = list[SectionUpdate](), list[str]()
    for name, text, is_edited in _edited(document):
        known = memory.section(name).text
        if not is_edited or _same(text, known):
            continue
        if document.digests.get(name) == _digest(known):
            updates.append(SectionUpdate(section=name, content=text.strip("\n")))
        elif text.strip() and _plain(text) not in _plain(known):
            both = f"{BOTH_KEPT}\n\n{text.strip(chr(10))}"
            updates.append(SectionUpdate(section=name, content=both, mode="append"))
            conflicts.append(name)
    return Edited(tuple(updates), tuple(conflicts))


def _edited(document: Document) -> Iterator[tuple[str, str, bool]]:
    """Each section's text in the file, and whether it is another than was written there."""
    for name, own in document.sections.items():
        drawn = document.drawn.get(name, "")
        known = document.digests.get(f"{name}*", _digest(""))
        text = f"{own}\n{drawn}" if drawn.strip() and not _is_digest(drawn, known) else own
        yield name, text, not _is_digest(text, document.digests.get(name, ""))


def _is_digest(text: str, digest: str) -> bool:
    """Whether a text is the one of a digest, as given or with other line ends."""
    return digest in (_digest(text), _digest(_plain(text)))


def _same(text: str, other: str) -> bool:
    return _plain(text) == _plain(other)


def _plain(text: str) -> str:
    """Text as an editor may leave it: plain line ends, no blanks at the end of lines."""
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(line.rstrip() for line in lines).strip("\n")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
