"""Everything that is published, from one command: `python -m publishing.release [DIRECTORY]`.

It leaves there (default: `dist/`) the wheel and the sdist, the MCP bundle that Claude Desktop
installs with a double click, and the `server.json` that the MCP registry takes. All of it is
read off `pyproject.toml` and the server itself, so nothing has to be kept in step by hand.
"""

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from mcp_context_server.settings import PREFIX
from mcp_context_server.tools import offered

ROOT = Path(__file__).resolve().parents[1]
REGISTRY_NAME = "io.github.mcp-context-server/mcp-context-server"
"""The name in the registry; the README carries it too, which proves to the registry that the
package is meant."""
TITLE = "Context"
SERVER_SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
EPOCH = (2020, 1, 1, 0, 0, 0)
"""The date of every file in the bundle, so that the same tree makes the same bytes."""


def main(directory: Path) -> None:
    """Build all of it into a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    build = [sys.executable, "-m", "build", "--outdir", str(directory), str(ROOT)]
    subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
    write_bundle(directory / f"{project['name']}-{project['version']}.mcpb", manifest(project))
    (directory / "server.json").write_text(_json(registry_entry(project)), encoding="utf-8")
    for path in sorted(directory.iterdir()):
        print(f"{path.stat().st_size:>9,}  {path}")


def manifest(project: dict[str, Any]) -> dict[str, Any]:
    """The bundle's manifest, by the MCPB specification 0.4; the host brings Python by uv."""
    return {
        "manifest_version": "0.4",
        "name": project["name"],
        "display_name": TITLE,
        "version": project["version"],
        "description": project["description"],
        "author": {"name": f"The authors of {project['name']}"},
        "license": project["license"],
        "keywords": project["keywords"],
        "server": {
            "type": "uv",
            "entry_point": "mcp_context_server/__main__.py",
            "mcp_config": {
                "command": "uv",
                "args": ["run", "--directory", "${__dirname}", project["name"]],
                "env": {f"{PREFIX}TOOLS": "${user_config.tools}"},
            },
        },
        "tools": [{"name": tool.name, "description": tool.description} for tool in _tools()],
        "prompts_generated": True,
        "compatibility": {
            "platforms": ["darwin", "linux", "win32"],
            "runtimes": {"python": project["requires-python"]},
        },
        "user_config": {
            "tools": {
                "type": "string",
                "title": "Tools",
                "description": "agent: what a model calls; all: what a program calls too",
                "default": "agent",
            }
        },
    }


def registry_entry(project: dict[str, Any]) -> dict[str, Any]:
    """What the MCP registry lists: where the package is, and how it is started."""
    return {
        "$schema": SERVER_SCHEMA,
        "name": REGISTRY_NAME,
        "title": TITLE,
        "description": project["description"],
        "version": project["version"],
        "packages": [
            {
                "registryType": "pypi",
                "identifier": project["name"],
                "version": project["version"],
                "runtimeHint": "uvx",
                "transport": {"type": "stdio"},
                "environmentVariables": [
                    {
                        "name": f"{PREFIX}STORE",
                        "description": "Where sessions are kept: sqlite:///PATH or postgresql://…",
                    },
                    {
                        "name": f"{PREFIX}TOOLS",
                        "description": "Which tools are offered.",
                        "choices": ["agent", "all"],
                        "default": "all",
                    },
                    {
                        "name": "ANTHROPIC_API_KEY",
                        "description": "Makes exact counts and summaries by a model possible.",
                        "isSecret": True,
                    },
                ],
            }
        ],
    }


def write_bundle(path: Path, manifest: dict[str, Any]) -> None:
    """A zip of the manifest and all that `uv run` needs to start the server."""
    with ZipFile(path, "w", ZIP_DEFLATED) as bundle:
        _add(bundle, "manifest.json", _json(manifest).encode())
        for source in sources():
            _add(bundle, source.relative_to(ROOT).as_posix(), source.read_bytes())


def _add(bundle: ZipFile, name: str, content: bytes) -> None:
    entry = ZipInfo(name, EPOCH)
    entry.compress_type = ZIP_DEFLATED
    bundle.writestr(entry, content)


def sources() -> Iterator[Path]:
    yield from (ROOT / name for name in ("pyproject.toml", "README.md", "LICENSE"))
    package = ROOT / "mcp_context_server"
    yield from sorted(
        path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    )


def _tools() -> Iterator[Any]:
    return (tool.made() for tool in offered())


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist")
