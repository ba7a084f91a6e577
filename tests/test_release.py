"""What is published: complete, in step with the project, and able to start."""

import json
import sys
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest
from mcp import Client, StdioServerParameters

from publishing import release

pytestmark = pytest.mark.anyio

PROJECT = tomllib.loads((release.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_one_command_builds_the_packages_the_bundle_and_the_registry_entry(tmp_path):
    release.main(tmp_path)
    version = PROJECT["version"]
    assert {path.name for path in tmp_path.iterdir()} == {
        f"mcp_context_server-{version}-py3-none-any.whl",
        f"mcp_context_server-{version}.tar.gz",
        f"mcp-context-server-{version}.mcpb",
        "server.json",
    }
    wheel = ZipFile(tmp_path / f"mcp_context_server-{version}-py3-none-any.whl").namelist()
    packaged = {name for name in wheel if not name.split("/")[0].endswith(".dist-info")}
    in_tree = {path.relative_to(release.ROOT).as_posix() for path in release.sources()}
    assert packaged == {name for name in in_tree if name.startswith("mcp_context_server/")}


async def test_a_server_starts_from_the_bundle_alone(tmp_path):
    bundle = tmp_path / "x.mcpb"
    release.write_bundle(bundle, release.manifest(PROJECT))
    with ZipFile(bundle) as zipped:
        zipped.extractall(tmp_path / "x")
    manifest = json.loads((tmp_path / "x/manifest.json").read_text(encoding="utf-8"))
    start = StdioServerParameters(
        command=sys.executable,
        args=["-P", str(tmp_path / "x" / manifest["server"]["entry_point"])],
        env={"PYTHONPATH": str(tmp_path / "x"), "MCP_CONTEXT_STORE": "memory:"},
        cwd=tmp_path,
    )
    async with Client(start) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
    assert names == {tool["name"] for tool in manifest["tools"]}


def test_the_same_tree_makes_the_same_bundle(tmp_path):
    made = [tmp_path / name for name in ("a.mcpb", "b.mcpb")]
    for path in made:
        release.write_bundle(path, release.manifest(PROJECT))
    assert made[0].read_bytes() == made[1].read_bytes()


def test_the_registry_entry_is_in_step_and_the_readme_vouches_for_it():
    entry = release.registry_entry(PROJECT)
    (package,) = entry["packages"]
    assert entry["version"] == package["version"] == PROJECT["version"]
    assert package["identifier"] == PROJECT["name"]
    assert len(entry["description"]) <= 100
    readme = Path(release.ROOT / "README.md").read_text(encoding="utf-8")
    assert f"<!-- mcp-name: {entry['name']} -->" in readme
