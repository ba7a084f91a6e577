import pytest

from mcp_context_server.core.tool_roles import COMPACTABLE, HOST_TOOLS, tool_path, tool_role


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("Bash", "shell"),
        ("Read", "read"),
        ("Grep", "grep"),
        ("Glob", "glob"),
        ("WebSearch", "web_search"),
        ("WebFetch", "web_fetch"),
        ("Edit", "edit"),
        ("Write", "write"),
        ("TodoWrite", "todo"),
        ("Task", "subagent"),
        ("Skill", "skill"),
        ("ExitPlanMode", "plan"),
        ("exec_command", "shell"),
        ("apply_patch", "edit"),
        ("update_plan", "todo"),
        ("run_shell_command", "shell"),
        ("write_to_file", "write"),
        ("functions.read_file", "read"),
        ("READ-FILE", "read"),
        ("mcp__filesystem__read_text_file", "read"),
        ("mcp__files__write_file", "write"),
        ("developer__text_editor", "edit"),
        ("mcp__calendar__create", None),
        ("mcp__crm__task", None),
        ("open", None),
        ("launch_rocket", None),
        ("", None),
        ("__", None),
    ],
)
def test_a_tool_is_known_by_its_name(name, role):
    assert tool_role(name) == role


def test_a_common_word_tells_a_role_only_where_the_host_is_known():
    assert [tool_role("create", host=host) for host in ("sweagent", "gemini", None)] == [
        "write",
        None,
        None,
    ]
    assert tool_role("replace", host="gemini") == "edit"


@pytest.mark.parametrize(
    ("arguments", "role"),
    [({"command": "view"}, "read"), ({"command": "create"}, "write"), ({}, "edit"), (None, "edit")],
)
def test_an_editor_with_commands_is_known_by_its_command(arguments, role):
    assert tool_role("str_replace_based_edit_tool", arguments) == role


def test_a_sessions_own_roles_go_first():
    assert tool_role("Read", own={"Read": "shell"}) == "shell"
    assert tool_role("launch_rocket", own={"launch_rocket": "write"}) == "write"


def test_every_name_in_the_tables_has_its_role_with_its_host():
    for host, roles in HOST_TOOLS.items():
        for role, names in roles.items():
            assert {tool_role(name, host=host) for name in names} == {role}, host


def test_what_may_be_cleared_is_ordered_by_how_fast_it_loses_value():
    assert COMPACTABLE == (
        "shell",
        "read",
        "grep",
        "glob",
        "web_search",
        "web_fetch",
        "edit",
        "write",
    )


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({"file_path": "/a.py"}, "/a.py"),
        ({"path": "/b.py", "file": 5}, "/b.py"),
        ({"filePath": ""}, None),
        ({}, None),
    ],
)
def test_the_file_a_call_works_on_is_found(arguments, path):
    assert tool_path(arguments) == path
