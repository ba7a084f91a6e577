"""What the scripted model says: a long piece of work, and a summary when one is asked for.

The work is a list of steps, each a text with calls or without. Which step comes next
is the caller's to remember: a conversation that was compacted in between no longer
shows how far the work has come.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Body = Mapping[str, Any]
"""The JSON of a request to the Messages API."""


@dataclass(frozen=True, slots=True)
class Step:
    """One response: what is thought and said, and the calls it makes, as names and inputs."""

    text: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    thinking: str = ""


TOOLS: tuple[dict[str, Any], ...] = tuple(
    {
        "name": name,
        "description": about,
        "input_schema": {
            "type": "object",
            "properties": {argument: {"type": "string"}},
            "required": [argument],
        },
    }
    for name, argument, about in (
        ("Read", "file_path", "Read a file."),
        ("Grep", "pattern", "Search all files for a pattern."),
        ("Bash", "command", "Run a shell command."),
    )
)
"""The tools that the work calls."""

RESULT_LINES = 120
PARTS = (
    *("parser", "lexer", "tokens", "grammar", "scope", "types"),
    *("checker", "lowering", "codegen", "linker", "cache", "cli"),
)


def work(rounds: int = 60) -> Iterator[Step]:
    """A long refactoring: reads, searches, test runs; a turn ends with every twelfth round."""
    for n in range(rounds):
        part = PARTS[n % len(PARTS)]
        yield Step(f"Next is `src/{part}.py`.", (("Read", {"file_path": f"src/{part}.py"}),))
        if n % 3 == 1:
            searches = [("Grep", {"pattern": f"{part}_{what}"}) for what in ("open", "close")]
            yield Step("Who uses it?", tuple(searches), thinking=f"Callers of {part} first.")
        if n % 4 == 3:
            yield Step(calls=(("Bash", {"command": f"pytest tests/test_{part}.py"}),))
        if n % 12 == 11:
            yield Step(f"That was round {n + 1}: {part} is done and its tests pass.")


def execute(name: str, arguments: Mapping[str, Any]) -> str:
    """What a tool of the work answers: always the same, and long."""
    (subject,) = arguments.values()
    match name:
        case "Bash":
            tests = "\n".join(f"{subject.split()[-1]}::test_{n} PASSED" for n in range(40))
            return f"{tests}\n40 passed in 1.24s"
        case "Grep":
            return "\n".join(f"src/{part}.py:{n}:    {subject}(state)" for n, part in _counted())
        case _:
            stem = str(subject).rpartition("/")[2].removesuffix(".py")
            lines = (f"    {stem}_{n} = combine({stem}_{n - 1}, {n})" for n in range(RESULT_LINES))
            return f"def run_{stem}(state):\n" + "\n".join(lines)


def _counted() -> Iterator[tuple[int, str]]:
    return enumerate(PARTS * 4, 17)


# ── the summary ──────────────────────────────────────────────────────────────

SECTIONS = (
    "Primary Request and Intent",
    "Key Technical Concepts",
    "Files and Code Sections",
    "Errors and Fixes",
    "Problem Solving",
    "All User Messages",
    "Pending Tasks",
    "Current Work",
    "Optional Next Step",
)
HEADING = re.compile(r"^ *(?:#+ *)?([1-9])\. +\**([A-Z][^:\n*]{3,60})", re.MULTILINE)
PATH = re.compile(r"[\w./-]*\w\.(?:py|md|toml|json|txt|ts|rs|go)\b")
MOST_PATHS, MOST_REQUESTS, REQUEST_CHARS = 40, 30, 600


def asks_for_summary(body: Body) -> bool:
    """Whether the system prompt or the last message asks for a `<summary>` block."""
    last = body["messages"][-1] if body.get("messages") else {}
    asked = said(last) if last.get("role") == "user" else []
    return any("<summary>" in text for text in [*texts_of(body.get("system")), *asked])


def summary_of(body: Body) -> str:
    """An analysis and a summary in nine sections of what a request shows."""
    messages = body["messages"]
    requests = [text for m in messages[:-1] if m["role"] == "user" for text in said(m)]
    spoken = [text for m in messages if m["role"] == "assistant" for text in said(m)]
    paths = list(dict.fromkeys(PATH.findall(str(messages))))[-MOST_PATHS:]
    listed = [f"- {text[:REQUEST_CHARS]}" for text in requests[:MOST_REQUESTS]]
    now = spoken[-1] if spoken else "The work has just begun."
    found = [
        "\n".join(listed[:1]) or "- The work shown above.",
        "- Python, pytest.",
        "\n".join(f"- `{path}`: read and checked." for path in paths) or "- None.",
        "- None.",
        "- Each part is read, its callers are found, its tests are run.",
        "\n".join(listed) or "- None that the conversation shows.",
        "- The parts that come next.",
        f"- {now}",
        f"- Go on: “{now}”",
    ]
    numbered = zip(range(1, 10), headings(body), found, strict=True)
    sections = "\n\n".join(f"{n}. {title}:\n{text}" for n, title, text in numbered)
    analysis = f"{len(messages)} messages, {len(paths)} files, {len(requests)} requests."
    return f"<analysis>\n{analysis}\n</analysis>\n\n<summary>\n{sections}\n</summary>"


def headings(body: Body) -> Sequence[str]:
    """The nine headings that the request asks for, or the usual ones."""
    asked = "\n".join([*texts_of(body.get("system")), *said(body["messages"][-1])])
    by_number: dict[str, str] = {}
    for number, title in HEADING.findall(asked):
        by_number.setdefault(number, title.strip())
    return list(by_number.values()) if len(by_number) == len(SECTIONS) else SECTIONS


def said(message: Mapping[str, Any]) -> list[str]:
    """The texts of a message itself, not those inside its results."""
    return texts_of(message.get("content"))


def texts_of(content: object) -> list[str]:
    """The texts of a string or of a list of blocks."""
    if isinstance(content, str):
        return [content]
    blocks = content if isinstance(content, list) else []
    return [block["text"] for block in blocks if _is_text(block)]


def _is_text(block: object) -> bool:
    return isinstance(block, dict) and isinstance(block.get("text"), str)
