"""Tools of hosts that nobody knows: what they are for is told by a file, and used everywhere."""

import json

import pytest
from conversations import assistant, call, conversation, result, user
from test_compacting import compactor, opened

from mcp_context_server.errors import InvalidInput
from mcp_context_server.hosts.tools import read_host_tools
from mcp_context_server.server import build_service
from mcp_context_server.service.compacting import Asked
from mcp_context_server.settings import from_environment
from mcp_context_server.stores.memory import MemoryStore

pytestmark = pytest.mark.anyio

TABLE = {
    "my-ide": {"read": ["open_buffer"], "todo": ["set_jobs"], "skill": ["learn"]},
    "other": {"write": ["save_buffer"], "plan": ["propose"]},
}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "host-tools.json"
    path.write_text(json.dumps(TABLE))
    return path


@pytest.mark.requirement("REST-6")
def test_the_file_names_roles_by_host(file):
    assert read_host_tools(file) == {
        "open_buffer": "read",
        "set_jobs": "todo",
        "learn": "skill",
        "save_buffer": "write",
        "propose": "plan",
    }


@pytest.mark.requirement("REST-6")
def test_the_setting_is_wired_and_a_policy_goes_before_it(file):
    environ = {
        "MCP_CONTEXT_HOST_TOOLS_FILE": str(file),
        "MCP_CONTEXT_COMPACTABLE_TOOLS": '{"learn": "shell"}',
    }
    service = build_service(from_environment(environ), MemoryStore())
    assert service.policy.compactable_tools["open_buffer"] == "read"
    assert service.policy.compactable_tools["learn"] == "shell"


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '{"h": {"fly": ["x"]}}',
        '{"h": {"read": "x"}}',
        '{"h": {"read": ["x"], "write": ["x"]}}',
    ],
)
def test_a_file_that_can_not_be_used_says_so(file, content):
    file.write_text(content)
    with pytest.raises(InvalidInput, match=r"host-tools\.json"):
        read_host_tools(file)


@pytest.mark.requirement("REST-6")
@pytest.mark.parametrize("prefix", ["", "mcp__ide__"])
async def test_files_todos_plan_and_skills_of_such_a_host_come_back(file, prefix):
    jobs = [{"content": "mend the lexer", "status": "in_progress"}]
    calls = {
        "r": call("r", f"{prefix}open_buffer", file_path="/a.py"),
        "t": call("t", f"{prefix}set_jobs", todos=jobs),
        "p": call("p", f"{prefix}propose", plan="# First the lexer"),
        "s": call("s", f"{prefix}learn", skill="deploy"),
    }
    view = [user("go", id="u")]
    for id, block in calls.items():
        view += [assistant(block, id=f"a{id}"), user(result(id, "text of it\n" * 40), id=f"b{id}")]
    rest = [m.model_copy(update={"id": f"w{m.id}"}) for m in conversation(*["p:3"] * 300)]
    made = compactor()
    live = await opened(made, (*view, *rest), policy={"compactable_tools": read_host_tools(file)})
    outcome = await made.compact(live, Asked())
    restored = outcome.restored
    assert ("/a.py" in restored.files, restored.skills) == (True, ("deploy",))
    assert restored.notes == ("todos", "plan")
    assert "mend the lexer" in outcome.summary
