"""What the documentation says is so: its commands run, its links resolve, its names exist.

The language of a fenced block says what becomes of it. `sh` is run, in a directory that
looks like a clone of this repository and with a home of its own; `sh serves` is interrupted
once it has said something, and `sh needs=…` is left out. `python` is run, or saved where it
has a `title`; `python part` is run where `ask` calls a server's tools. `json` is parsed.
`text` behind `sh` is what that printed, where `…` stands for anything.
"""

import ast
import json
import re
import shlex
from functools import cache, partial
from importlib import import_module
from pathlib import Path

import click
import pytest
from calls import answer, service
from mcp import Client
from pages import ROOT, Block, Page, pages
from playing import Play, is_as_told

from mcp_context_server.commands import COMMANDS
from mcp_context_server.core.policy import Policy
from mcp_context_server.demo import recording
from mcp_context_server.server import build_server
from mcp_context_server.settings import PREFIX, Settings
from mcp_context_server.tools import definitions

PACKAGE = ROOT / "mcp_context_server"
PAGES = tuple(pages())
NEEDS = {"needs=network", "needs=node", "needs=database", "needs=key"}
"""Why a command is not run here."""


def named(page: Page) -> str:
    return page.name


# ── commands ─────────────────────────────────────────────────────────────────

PLAYED = [
    page
    for page in PAGES
    if any(block.language in ("sh", "python", "json") for block in page.blocks)
]


@pytest.mark.parametrize("page", PLAYED, ids=named)
def test_what_a_page_shows_runs_and_prints_what_it_says(page, tmp_path):
    play, output = Play(tmp_path), ""
    for block in page.blocks:
        output = _played(play, block, output)


def _played(play: Play, block: Block, output: str) -> str:
    """What a block prints; `output` is what the one before it printed."""
    match block.language, block.words:
        case "sh", ():
            return play.run_shell(block)
        case "sh", ("serves",):
            return play.serve(block)
        case "sh", (needs,):
            assert needs in NEEDS
        case "python", ():
            return play.run_python(block)
        case "python", ("part",):
            return ""
        case (("python" | "json"), (title,)):
            play.save(block, title.removeprefix("title="))
        case "json", ():
            json.loads(block.text)
        case "text", ():
            assert is_as_told(block.text, output), output
    return ""


PARTS = [page for page in PAGES if any("part" in block.words for block in page.blocks)]


@pytest.mark.anyio
@pytest.mark.parametrize("page", PARTS, ids=named)
async def test_the_parts_of_a_page_run_one_after_another(page):
    """They share their names, and a session `s` that holds an hour of work."""
    server = build_server(service())
    async with Client(server) as client:
        opening = {"session_id": "s", "model": "claude-sonnet-4-5", "context_window": 72_000}
        messages = [message.model_dump(exclude_unset=True) for message in recording()]
        await answer(client, "session_open", **opening)
        await answer(client, "append_messages", session_id="s", messages=messages)
        names = {"ask": partial(answer, client)}
        for block in page.blocks:
            if block.words == ("part",):
                await run_part(block.text, names)


async def run_part(source: str, names: dict) -> None:
    """Run statements that await, as a notebook does."""
    code = compile(source, "part", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    awaited = eval(code, names)
    if awaited is not None:
        await awaited


def test_an_output_is_as_told_where_only_the_open_places_differ():
    told = "a: …\n…\nlast"
    assert is_as_told(told, "a: 1\nb\nc\nlast\n")
    assert is_as_told(told, "a: 1\nlast\n")
    assert not is_as_told(told, "b: 1\nlast\n")
    assert not is_as_told(told, "a: 1\nlast\nmore\n")


# ── links ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("page", [page for page in PAGES if page.links], ids=named)
def test_links_lead_somewhere(page):
    assert [link for link in page.links if not _resolves(page, link)] == []


def _resolves(page: Page, link: str) -> bool:
    if re.match(r"(https?|mailto):", link):
        return True
    place, _, anchor = link.partition("#")
    target = (page.path.parent / place).resolve() if place else page.path
    return target.exists() and (not anchor or anchor in Page(target).anchors)


def test_every_page_is_reached_from_the_readme():
    reached, open_pages = set[Path](), [ROOT / "README.md"]
    while open_pages:
        path = open_pages.pop()
        if path not in reached and path.suffix == ".md":
            reached.add(path)
            places = (link.partition("#")[0] for link in Page(path).links if ":" not in link)
            open_pages += [target for place in places for target in _pages_at(path, place)]
    assert [page.name for page in PAGES if page.path not in reached] == []


def _pages_at(path: Path, place: str) -> list[Path]:
    target = (path.parent / place).resolve()
    return sorted(target.glob("*.md")) if target.is_dir() else [target]


# ── names ────────────────────────────────────────────────────────────────────


@cache
def known_words() -> frozenset[str]:
    """Every word of the package's code, and of what is measured, shown and tested with it."""
    code = ("*.py", "*.js", "*.toml", "*.json")
    places = (PACKAGE, ROOT / "benchmarks", ROOT / "examples")
    texts = (
        path.read_text(encoding="utf-8")
        for place in places
        for pattern in code
        for path in place.rglob(pattern)
    )
    return frozenset(word for text in texts for word in re.findall(r"\w+", text))


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_settings_of_the_environment_exist(page):
    said = set(re.findall(rf"\b{PREFIX}([A-Z][A-Z0-9_]*)", page.source))
    there = {name.upper() for name in (*Settings.model_fields, *Policy.model_fields)}
    assert said - there - {"CLIENTS"} == set()


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_names_of_tools_arguments_fields_and_numbers_exist(page):
    said = {code for code in page.codes if re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)+", code)}
    assert said - known_words() == set()


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_calls_of_tools_name_their_arguments(page):
    tools = definitions()
    wrong = [
        (tool, argument)
        for tool, arguments in re.findall(r"\b([a-z_]+)\(([^()]*=[^()]*)\)", page.source)
        if tool in tools
        for argument in re.findall(r"(?:^|, )(\w+)=", arguments)
        if argument not in tools[tool].parameters["properties"]
    ]
    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_commands_and_their_options_exist(page):
    codes = (code.removeprefix("mcp-context-server ") for code in page.codes)
    wrong = [code for code in codes if code.split()[0] in COMMANDS and _unknown_in(code)]
    assert wrong == []


def _unknown_in(line: str) -> list[str]:
    """The words of a command line that are neither commands nor options there."""
    name, *words = shlex.split(line)
    command: click.Command = import_module(f"mcp_context_server.commands.{name}").command
    unknown: list[str] = []
    for word in words:
        if word.startswith("--"):
            options = {each for parameter in command.params for each in parameter.opts}
            unknown += [word] if word.partition("=")[0] not in options else []
        elif isinstance(command, click.Group):
            unknown += [word] if word not in command.commands else []
            command = command.commands.get(word, command)
    return unknown


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_files_of_this_repository_that_are_named_are_there(page):
    ours = r"(?:docs|benchmarks|tests|examples|publishing|core|stores|\.ci|mcp_context_server)/"
    said = {code for code in page.codes if re.fullmatch(rf"{ours}[\w./-]*", code)}
    there = (ROOT, PACKAGE)
    assert [name for name in said if not any((place / name).exists() for place in there)] == []


def test_pages_that_messages_of_the_code_name_are_there():
    told = {
        name
        for path in PACKAGE.rglob("*.py")
        for name in re.findall(r"docs/[\w./-]*\w", path.read_text(encoding="utf-8"))
    }
    assert told
    assert [name for name in told if not (ROOT / name).exists()] == []


# ── decisions ────────────────────────────────────────────────────────────────


def test_each_decision_has_a_number_of_its_own_and_says_why_what_and_what_follows():
    found = sorted((ROOT / "docs/decisions").glob("*.md"))
    assert len({path.name[:4] for path in found}) == len(found) > 0
    for path in found:
        text = path.read_text(encoding="utf-8")
        assert text.startswith(f"# {int(path.name[:4])}. ")
        parts = re.findall(
            r"^(Status|\*\*Context|\*\*Decision|\*\*Consequences)", text, re.MULTILINE
        )
        assert parts == ["Status", "**Context", "**Decision", "**Consequences"], path.name


# ── the glossary ─────────────────────────────────────────────────────────────

VOCABULARY = """
    append, block, boundary, breaker, budget, call, catalog, collapse, compact, count,
    cut point, deferred tool, edit, effective window, entry, estimate, headroom, message,
    micro-compact, placeholder, plan, policy, prepare, project, recall, recover, reference,
    remember, reserve, restore, result, role, round, search, session, session memory,
    settings, snip, spill, stage, threshold, tool reference, transcript, trigger, turn,
    usage, version, view, window
"""


def test_the_glossary_defines_the_vocabulary_a_word_at_a_time_in_order():
    words = re.findall(r"^\*\*(.+?)\*\*", Page(ROOT / "docs/glossary.md").source, re.MULTILINE)
    assert words == [word.strip() for word in VOCABULARY.split(",")]
