"""What the page on deployment has one write down works as it stands there."""

import re
import shlex
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from click import Context
from pages import ROOT, Page

from mcp_context_server.cli import main
from mcp_context_server.serving.token_file import read_tokens
from mcp_context_server.settings import Settings

PAGE = Page(ROOT / "docs" / "how-to" / "deploy.md")
(COMPOSE,) = (block.text for block in PAGE.blocks if block.language == "yaml")
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "0"},
    },
}


def command() -> str:
    """What the server's container runs, as its shell gets it."""
    folded = re.search(r"command: >-\n((?: {6}.*\n)+)", COMPOSE)[1]
    shell, option, told = shlex.split(" ".join(folded.split()))
    assert (shell, option) == ("sh", "-c")
    return told.replace("$$", "$")


def test_the_compose_file_names_only_what_there_is():
    told = main.get_command(Context(main), "serve")
    options = {name for each in told.params for name in each.opts}
    assert set(re.findall(r"--[a-z-]+", command())) <= options
    variables = set(re.findall(r"MCP_CONTEXT_[A-Z_]+", COMPOSE))
    assert {name.removeprefix("MCP_CONTEXT_").lower() for name in variables} <= {
        *Settings.model_fields
    }
    extras = re.search(r"mcp-context-server\[([a-z,]+)\]", COMPOSE)[1].split(",")
    project = (ROOT / "pyproject.toml").read_text()
    assert all(re.search(rf"^{extra} = \[", project, re.MULTILINE) for extra in extras)


def test_whatever_a_service_uses_is_defined():
    services, _, defined = COMPOSE.partition("\nsecrets:\n")
    used = re.findall(r"^    secrets: \[(.+)\]", services, re.MULTILINE)
    assert {name for each in used for name in each.split(", ")} == set(
        re.findall(r"^  (\w+): \{file", defined, re.MULTILINE)
    )
    volumes = re.findall(r'volumes: \["(\w+):/', services)
    assert set(volumes) == set(re.findall(r"(\w+): \{\}", defined))
    assert set(re.findall(r"/run/secrets/(\w+)", COMPOSE)) == {"db", "tokens"}


@pytest.fixture
def secrets(tmp_path) -> tuple[Path, str]:
    """The directory of the secrets, made as the page says, and the token that it told."""
    (script,) = (block.text for block in PAGE.blocks if ">> secrets/tokens" in block.text)
    done = subprocess.run(["sh", "-e"], input=script, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return tmp_path / "secrets", done.stdout.split()[-1]


def test_tokens_are_kept_as_digests_and_the_directory_is_ones_own(secrets):
    directory, token = secrets
    owners, faults = read_tokens(directory / "tokens")
    assert (list(owners.values()), faults) == (["alice"], ())
    assert token not in (directory / "tokens").read_text()
    assert directory.stat().st_mode & 0o077 == 0


@contextmanager
def served(shell: str, environ: dict[str, str]):
    """The address of a server that a shell command starts."""
    process = subprocess.Popen(["sh", "-c", shell], stderr=subprocess.PIPE, text=True, env=environ)
    try:
        lines = iter(process.stderr.readline, "")
        port = next(found[1] for line in lines if (found := re.search(r"http://\S+:(\d+)", line)))
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=30)
        process.stderr.close()


@pytest.mark.requirement("SERVE-4")
def test_the_servers_command_lets_in_who_has_a_token_and_comes_by_its_name(secrets, postgres):
    directory, token = secrets
    database = postgres.new_database().partition("@/")[2]
    with postgres.administer() as db:
        db.execute("CREATE ROLE context SUPERUSER LOGIN")
    told = command().replace("mcp-context-server", f"{sys.executable} -m mcp_context_server")
    told = told.replace("/run/secrets", str(directory)).replace("@db/context", f"@/{database}")
    name = re.search(r"MCP_CONTEXT_ALLOWED_HOSTS: (\S+)", COMPOSE)[1]
    environ = {"MCP_CONTEXT_ALLOWED_HOSTS": name, "PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    accepted = {"accept": "application/json, text/event-stream"}
    with served(f"{told} --port 0", environ) as address:
        assert httpx2.get(f"{address}/readyz").status_code == 200
        codes = [
            httpx2.post(f"{address}/mcp", json=HELLO, headers={**accepted, **more}).status_code
            for more in (
                {"host": name, "authorization": f"Bearer {token}"},
                {"host": name},
                {"host": "elsewhere.example", "authorization": f"Bearer {token}"},
            )
        ]
    assert codes[:2] == [200, 401]
    assert codes[2] in (403, 421)
