"""The arrows of the design point down, and importing does no work."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import mcp_context_server

PACKAGE = Path(mcp_context_server.__file__).parent
CORE = PACKAGE / "core"

PURE = {
    "__future__",
    "array",
    "base64",
    "binascii",
    "bisect",
    "collections",
    "dataclasses",
    "datetime",
    "difflib",
    "enum",
    "functools",
    "hashlib",
    "heapq",
    "html",
    "importlib",
    "itertools",
    "json",
    "math",
    "operator",
    "pathlib",
    "pydantic",
    "re",
    "string",
    "sys",
    "struct",
    "textwrap",
    "tomllib",
    "types",
    "typing",
    "unicodedata",
    "urllib",
    "zlib",
}
"""Modules without input, output, clock or chance; of pathlib only the pure paths, of importlib
only package data, read when first needed."""

BELOW = {"core", "errors", "ports"}

SHELL = {
    *BELOW,
    "answers",
    "events",
    "files",
    "keeping",
    "regular",
    "results",
    "summarizers",
    "transcripts",
}

SURFACE = {*SHELL, "identity", "service", "state"}

LAYERS = (
    ("core", {"errors"}),
    ("ports", {"core"}),
    ("stores", BELOW),
    ("counters", BELOW),
    ("transcripts", {"core", "errors", "regular"}),
    ("keeping", {*BELOW, "__version__", "regular"}),
    ("summarizers", {*BELOW, "events"}),
    ("results", {"core"}),
    ("files", {"errors", "regular"}),
    ("service", SHELL),
    ("state", {"identity", "service"}),
    ("tools", {*SURFACE, "__version__", "panel"}),
    ("resources", {*SURFACE, "tools"}),
    ("prompts", {*SURFACE, "tools"}),
    ("subscriptions", {*SURFACE, "resources", "tools"}),
)
"""What may import what, of the package's own parts; the commands and the server are free."""


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return found


def test_every_module_says_first_what_it_is_for():
    for path in PACKAGE.rglob("*.py"):
        promise = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        assert promise, path


def test_imports_are_absolute():
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            assert not (isinstance(node, ast.ImportFrom) and node.level), f"{path}:{node.lineno}"


def files(part: str) -> list[Path]:
    return [*(PACKAGE / part).rglob("*.py")] or [PACKAGE / f"{part}.py"]


def test_the_core_imports_only_pure_modules():
    for path in CORE.rglob("*.py"):
        outside = {name for name in imports(path) if not name.startswith("mcp_context_server")}
        assert {name.split(".")[0] for name in outside} <= PURE, path


@pytest.mark.parametrize(("part", "allowed"), LAYERS)
def test_dependencies_point_down(part, allowed):
    for path in files(part):
        ours = {name for name in imports(path) if name.startswith("mcp_context_server.")}
        assert {name.split(".")[1] for name in ours} <= allowed | {part}, path


def test_the_core_neither_awaits_nor_reads_a_clock_nor_opens_files():
    forbidden = {"open", "input", "print", "now", "utcnow", "today"}
    for path in CORE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            assert not isinstance(node, ast.AsyncFunctionDef | ast.Await), path
            if isinstance(node, ast.Call):
                name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                assert name not in forbidden, f"{path}:{node.lineno} calls {name}"


def test_functions_are_small():
    """Nine in ten are under 30 lines, and none is over 60."""
    lengths = {
        f"{path}:{node.lineno} {node.name}": node.end_lineno - node.lineno + 1
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {name: lines for name, lines in lengths.items() if lines > 60} == {}
    assert sum(lines < 30 for lines in lengths.values()) >= 0.9 * len(lengths)


def test_importing_does_no_work():
    """No output, no file opened, no thread started, no heavy library loaded."""
    program = """
import sys, threading
opened = []
sys.addaudithook(lambda event, args: opened.append(args[0]) if event == "open" else None)
import mcp_context_server.cli, mcp_context_server.server
data = [p for p in opened if isinstance(p, str) and not p.endswith((".py", ".pyc", ".so"))]
ours = [p for p in data if "mcp_context_server/" in p and not p.endswith("__pycache__")]
heavy = {"anthropic", "numpy", "tiktoken", "psycopg"} & set(sys.modules)
assert (ours, heavy, threading.active_count()) == ([], set(), 1), (ours, heavy)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
