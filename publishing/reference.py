"""The reference pages, written from the code: `python -m publishing.reference`.

A test compares what this would write with what stands in `docs/reference/`, so the pages are
never behind the code.
"""

import ast
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import click
from mcp import Client

from mcp_context_server import errors, settings
from mcp_context_server.cli import main as command_line
from mcp_context_server.commands import COMMANDS
from mcp_context_server.core import policy
from mcp_context_server.events import EVENTS, FACTS
from mcp_context_server.server import build_server, build_service, open_store
from mcp_context_server.settings import PREFIX, REFERENCE_VARIABLES, Settings
from mcp_context_server.tools import Tool, offered

DIRECTORY = Path(__file__).resolve().parents[1] / "docs" / "reference"
MADE = "<!-- Written by `python -m publishing.reference`; change the code, not this page. -->\n"


def pages() -> dict[str, str]:
    """Every reference page, by its file name."""
    return {
        "tools.md": _page("Tools", _tools()),
        "resources-and-prompts.md": _page("Resources and prompts", anyio.run(_surface)),
        "command-line.md": _page("Command line", _commands()),
        "settings.md": _page("Settings", _settings()),
        "policy.md": _page("Policy", _policy()),
        "errors.md": _page("Errors and exit codes", _errors()),
        "events.md": _page("Events", _events()),
    }


def main() -> None:
    """Write the pages."""
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (DIRECTORY / name).write_text(text, encoding="utf-8")


def _page(title: str, parts: Iterable[str]) -> str:
    text = "\n\n".join((f"# {title}", *parts))
    return f"{MADE}\n{text}\n"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(head), ["---"] * len(list(head)), *map(list, rows)]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text.replace("|", "\\|")).strip()


# ── fields of a class, with the docstrings below them ────────────────────────


@dataclass(frozen=True, slots=True)
class Documented:
    """A field as its class declares it, in source text."""

    section: str
    name: str
    type: str
    default: str
    text: str


def _fields(cls: type) -> list[Documented]:
    """The fields of a class and their docstrings; `section` is the comment line above them."""
    source = inspect.getsource(cls)
    lines, body = source.splitlines(), ast.parse(source).body[0]
    assert isinstance(body, ast.ClassDef)
    found: list[Documented] = []
    for statement, after in zip(body.body, [*body.body[1:], None], strict=True):
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        section = next(
            (m[1] for line in lines[: statement.lineno][::-1] if (m := _SECTION.search(line))), ""
        )
        kind, default = ast.unparse(statement.annotation), _default(statement.value)
        found.append(Documented(section, statement.target.id, kind, default, _docstring(after)))
    return found


_SECTION = re.compile(r"# ── (.+?) ─")


def _docstring(statement: ast.stmt | None) -> str:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return str(statement.value.value)
    return ""


def _default(value: ast.expr | None) -> str:
    """What a field is where nothing is given, as source text; empty where it must be given."""
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "Field":
        value = next((word.value for word in value.keywords if word.arg == "default"), None)
    text = "" if value is None else ast.unparse(value)
    return text if len(text) <= 60 else "(see the code)"


def _by_section(fields: Iterable[Documented]) -> Mapping[str, list[Documented]]:
    sections: dict[str, list[Documented]] = {}
    for field in fields:
        sections.setdefault(field.section, []).append(field)
    return sections


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


# ── the pages ────────────────────────────────────────────────────────────────


def _tools() -> Iterator[str]:
    yield (
        "Every tool takes `session_id`; on stdio it may be left out. An answer is "
        "structured content and one line of text. Fields with nothing to say are left out."
    )
    for tool in offered():
        yield from _tool(tool)


def _tool(tool: Tool) -> Iterator[str]:
    made = tool.made()
    yield f"## {made.name}"
    yield made.description
    yield "For a model." if tool.for_agents else "For the program around a model."
    schema, whole = made.parameters["properties"], made.accepts["properties"]
    rows = (
        (_code(name), _type_of(told), _code(_given(whole[name])), told.get("description", ""))
        for name, told in schema.items()
    )
    yield _table(("argument", "type", "default", "meaning"), rows)
    result = made.output_schema or {}
    answered = ((_code(name), _type_of(told)) for name, told in result["properties"].items())
    yield _table(("field of the answer", "type"), answered)


def _given(told: Mapping[str, Any]) -> str:
    return repr(told["default"]) if told.get("default") else ""


def _type_of(told: Mapping[str, Any]) -> str:
    if "$ref" in told:
        return told["$ref"].rpartition("/")[2]
    if "enum" in told:
        return ", ".join(_code(str(value)) for value in told["enum"])
    if "anyOf" in told:
        kinds = dict.fromkeys(_type_of(each) for each in told["anyOf"])
        return " or ".join(kind for kind in kinds if kind != "null")
    if told.get("type") == "array":
        inner = _type_of(told.get("items", {}))
        return f"list of {inner}" if inner else "list"
    kind = told.get("type", "")
    return kind if isinstance(kind, str) else " or ".join(k for k in kind if k != "null")


async def _surface() -> list[str]:
    """What a client is told, asked as a client asks."""
    store = open_store("memory:")
    server = build_server(build_service(Settings(), store))
    async with Client(server) as client:
        resources = (await client.list_resources()).resources
        templates = (await client.list_resource_templates()).resource_templates
        prompts = (await client.list_prompts()).prompts
    await store.aclose()
    addressed = [(str(r.uri), r) for r in resources]
    addressed += [(t.uri_template, t) for t in templates]
    rows = ((_code(uri), r.mime_type or "", r.description or "") for uri, r in addressed)
    parts = ["## Resources", _table(("address", "type", "what it is"), rows), "## Prompts"]
    for prompt in prompts:
        parts += [f"### {prompt.name}", prompt.description or ""]
        if prompt.arguments:
            given = ((_code(a.name), a.description or "") for a in prompt.arguments)
            parts.append(_table(("argument", "meaning"), given))
    return parts


def _commands() -> Iterator[str]:
    yield _help(command_line, "mcp-context-server")
    for name in COMMANDS:
        command = import_module(f"mcp_context_server.commands.{name}").command
        yield from _command(command, f"mcp-context-server {name}")


def _command(command: click.Command, name: str) -> Iterator[str]:
    yield f"## {name.removeprefix('mcp-context-server ')}"
    yield _help(command, name)
    if isinstance(command, click.Group):
        for below in sorted(command.commands):
            yield from _command(command.commands[below], f"{name} {below}")


def _help(command: click.Command, name: str) -> str:
    options = command_line.context_settings["help_option_names"]
    with click.Context(
        command,
        info_name=name,
        terminal_width=90,
        max_content_width=90,
        help_option_names=options,
    ) as at:
        return f"```\n{command.get_help(at).rstrip()}\n```"


def _settings() -> Iterator[str]:
    yield (
        f"A variable of the environment is named `{PREFIX}` and the setting; flags of the "
        "command line go before it. A value that can't be used is ignored, with a "
        "warning; a store that can't be used is refused, with exit code 1."
    )
    for section, fields in _by_section(_fields(settings.Settings)).items():
        yield f"## {section.capitalize()}"
        rows = (
            (_code(f"{PREFIX}{f.name.upper()}"), _code(f.default), f.text)
            for f in fields
            if f.name not in ("model_config", "policy_overrides", "warnings")
        )
        yield _table(("variable", "default", "meaning"), rows)
    yield "## Variables of other programs"
    yield "They are honoured with the same meaning; ours win."
    known = ((_code(v.name), _code(v.field)) for v in REFERENCE_VARIABLES)
    yield _table(("variable", "sets"), known)


def _policy() -> Iterator[str]:
    yield (
        f"Every number the server obeys. `{PREFIX}<NAME>` sets one for the process, "
        "`session_open(policy={…})` for a session."
    )
    for section, fields in _by_section(_fields(policy.Policy)).items():
        yield f"## {section.capitalize()}"
        rows = ((_code(f.name), _code(f.default), f.text) for f in fields)
        yield _table(("name", "default", "meaning"), rows)


def _errors() -> Iterator[str]:
    told = _module_text(errors)
    first, _, tree = told.partition("\n\n")
    yield first
    yield f"```\n{tree.rstrip()}\n```"
    yield "A tool answers with the message and `isError`; nothing was changed, unless it says so."
    yield "## Exit codes"
    codes = (("0", "done"), ("2", "wrong usage"), ("1", "anything else"))
    yield _table(("code", "meaning"), codes)
    yield "Besides the code there is one line on stderr."


def _events() -> Iterator[str]:
    yield (
        "What happens to a session's view, as log lines and to OpenTelemetry "
        "([observe it](../how-to/observe.md)). Facts that there are none of are left out."
    )
    yield _table(("event", "what happened"), ((_code(n), what) for n, what in EVENTS.items()))
    yield _table(("fact", "what it says"), ((_code(n), what) for n, what in FACTS.items()))


def _module_text(module: ModuleType) -> str:
    return inspect.cleandoc(module.__doc__ or "")


if __name__ == "__main__":
    main()
