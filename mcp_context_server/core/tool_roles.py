"""What tools are for, by host: data, and how a tool's role is looked up.

The names are those that hosts offer to their models, gathered from their
transcripts and published tool lists. A session may name the roles of its own
tools; those go before everything here.
"""

import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Literal

ToolRole = Literal[
    "shell",
    "read",
    "grep",
    "glob",
    "web_search",
    "web_fetch",
    "edit",
    "write",
    "plan",
    "todo",
    "subagent",
    "skill",
]

COMPACTABLE: tuple[ToolRole, ...] = (
    "shell",
    "read",
    "grep",
    "glob",
    "web_search",
    "web_fetch",
    "edit",
    "write",
)
"""Roles whose old results may be cleared, in the order in which they lose their value."""

HOST_TOOLS: Mapping[str, Mapping[ToolRole, tuple[str, ...]]] = MappingProxyType(
    {
        "claude-code": {
            "shell": ("Bash", "BashOutput", "KillBash", "KillShell", "PowerShell", "Monitor"),
            "read": ("Read", "NotebookRead"),
            "grep": ("Grep",),
            "glob": ("Glob", "LS"),
            "web_search": ("WebSearch",),
            "web_fetch": ("WebFetch",),
            "edit": ("Edit", "MultiEdit", "NotebookEdit"),
            "write": ("Write",),
            "plan": ("EnterPlanMode", "ExitPlanMode"),
            "todo": ("TodoWrite", "TodoRead", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet"),
            "subagent": ("Task", "Agent", "TaskOutput", "AgentOutputTool", "SendMessage"),
            "skill": ("Skill", "SlashCommand"),
        },
        "codex": {
            "shell": ("shell", "shell_command", "exec_command", "write_stdin", "local_shell"),
            "read": ("view_image", "read_file"),
            "grep": ("grep_files",),
            "glob": ("list_dir",),
            "web_search": ("web_search", "web.run"),
            "edit": ("apply_patch",),
            "todo": ("update_plan",),
            "subagent": ("spawn_agent", "wait_agent", "send_input", "close_agent"),
        },
        "gemini": {
            "shell": ("run_shell_command",),
            "read": ("read_file", "read_many_files"),
            "grep": ("search_file_content", "grep_search"),
            "glob": ("glob", "list_directory"),
            "web_search": ("google_web_search",),
            "web_fetch": ("web_fetch",),
            "edit": ("replace",),
            "write": ("write_file",),
            "plan": ("enter_plan_mode", "exit_plan_mode"),
            "todo": ("write_todos", "todo_write"),
            "subagent": ("delegate_to_agent", "codebase_investigator"),
            "skill": ("activate_skill",),
        },
        "opencode": {
            "shell": ("bash",),
            "read": ("read",),
            "grep": ("grep", "codesearch"),
            "glob": ("glob", "list"),
            "web_search": ("websearch",),
            "web_fetch": ("webfetch",),
            "edit": ("edit", "multiedit", "patch", "apply_patch"),
            "write": ("write",),
            "plan": ("plan_enter", "plan_exit"),
            "todo": ("todowrite", "todoread"),
            "subagent": ("task",),
            "skill": ("skill",),
        },
        "cline": {
            "shell": ("execute_command", "run_commands", "read_command_output"),
            "read": ("read_file", "read_files"),
            "grep": ("search_files", "search_codebase", "codebase_search"),
            "glob": ("list_files", "list_code_definition_names"),
            "web_search": ("web_search",),
            "web_fetch": ("web_fetch", "fetch_web_content", "browser_action"),
            "edit": (
                "replace_in_file",
                "apply_diff",
                "insert_content",
                "search_and_replace",
                "apply_patch",
                "editor",
            ),
            "write": ("write_to_file", "new_file"),
            "plan": ("plan_mode_respond", "switch_mode"),
            "todo": ("focus_chain", "update_todo_list"),
            "subagent": ("new_task", "use_subagents"),
            "skill": ("use_skill", "skill", "skills"),
        },
        "pi": {
            "shell": ("bash", "eval"),
            "read": ("read",),
            "grep": ("grep",),
            "glob": ("find", "glob", "ls"),
            "web_search": ("web_search",),
            "web_fetch": ("fetch",),
            "edit": ("edit", "ast_edit"),
            "write": ("write",),
            "todo": ("todo", "todo_write"),
            "subagent": ("task",),
        },
        "cursor": {
            "shell": ("run_terminal_cmd", "Shell", "AwaitShell"),
            "read": ("read_file", "Read"),
            "grep": ("grep_search", "codebase_search", "SemanticSearch", "Grep"),
            "glob": ("file_search", "list_dir", "Glob", "LS"),
            "web_search": ("web_search", "WebSearch"),
            "web_fetch": ("WebFetch",),
            "edit": ("edit_file", "search_replace", "StrReplace", "ApplyPatch"),
            "write": ("Write", "write"),
            "plan": ("create_plan", "CreatePlan", "SwitchMode"),
            "todo": ("todo_write", "TodoWrite"),
            "subagent": ("Task",),
        },
        "vscode": {
            "shell": ("run_in_terminal", "get_terminal_output", "terminal_last_command"),
            "read": ("read_file", "view_image"),
            "grep": ("grep_search", "semantic_search"),
            "glob": ("file_search", "list_dir"),
            "web_fetch": ("fetch_webpage", "open_simple_browser"),
            "edit": (
                "replace_string_in_file",
                "multi_replace_string_in_file",
                "insert_edit_into_file",
                "apply_patch",
                "edit_notebook_file",
            ),
            "write": ("create_file", "create_new_jupyter_notebook"),
            "todo": ("manage_todo_list",),
            "subagent": ("runSubagent", "search_subagent"),
        },
        "windsurf": {
            "shell": ("run_command", "command_status"),
            "read": ("view_file", "view_file_outline", "view_code_item", "view_line_range"),
            "grep": ("grep_search", "codebase_search"),
            "glob": ("find_by_name", "list_dir"),
            "web_search": ("search_web",),
            "web_fetch": ("read_url_content", "view_content_chunk"),
            "edit": ("replace_file_content", "multi_replace_file_content", "edit_file"),
            "write": ("write_to_file",),
            "todo": ("update_plan", "todo_list"),
        },
        "openhands": {
            "shell": ("execute_bash", "run", "terminal", "run_ipython", "execute_ipython_cell"),
            "read": ("read", "file_viewer"),
            "web_fetch": ("browse", "browse_interactive", "browser"),
            "edit": ("edit", "edit_file"),
            "write": ("write",),
            "todo": ("task_tracker",),
            "subagent": ("delegate", "delegate_to_browsing_agent"),
        },
        "sweagent": {
            "shell": ("bash", "execute_bash"),
            "read": ("open", "goto", "scroll_down", "scroll_up"),
            "grep": ("search_dir", "search_file"),
            "glob": ("find_file",),
            "edit": ("edit", "insert"),
            "write": ("create",),
        },
        "anthropic": {
            "shell": ("bash", "bash_code_execution", "code_execution"),
            "web_search": ("web_search",),
            "web_fetch": ("web_fetch",),
        },
        "mcp": {
            "shell": ("start_process", "interact_with_process", "read_process_output"),
            "read": ("read_text_file", "read_media_file", "read_multiple_files", "read_file"),
            "grep": ("search_code", "start_search"),
            "glob": ("list_directory", "list_directory_with_sizes", "directory_tree"),
            "web_search": ("brave_web_search", "tavily_search", "web_search_exa"),
            "web_fetch": ("fetch", "fetch_url", "tavily_extract"),
            "edit": ("edit_file", "edit_block"),
            "write": ("write_file",),
        },
    }
)
"""By host and role, the names a host's model knows its tools by."""

COMMAND_TOOLS = frozenset(
    {
        "str_replace_editor",
        "str_replace_based_edit_tool",
        "text_editor",
        "text_editor_code_execution",
        "file_editor",
    }
)
"""Tools whose role is told by their `command` argument."""

COMMAND_ROLES: Mapping[object, ToolRole] = MappingProxyType(
    {"view": "read", "create": "write", "write": "write", "str_replace": "edit", "insert": "edit"}
)

HOST_ONLY_NAMES = frozenset(
    {"agent", "browser", "create", "editor", "eval", "fetch", "find", "insert", "list", "monitor"}
    | {"open", "patch", "replace", "run", "sendmessage"}
)
"""Words too common to tell a tool's role by unless its host is known."""

PATH_ARGUMENTS = (
    "file_path",
    "filePath",
    "absolute_path",
    "target_file",
    "notebook_path",
    "TargetFile",
    "AbsolutePath",
    "path",
    "file",
    "filename",
)
"""Arguments under which tools are given the file they work on, most telling first."""


def tool_role(
    name: str,
    arguments: Mapping[str, Any] | None = None,
    *,
    host: str | None = None,
    own: Mapping[str, ToolRole] | None = None,
) -> ToolRole | None:
    """What a tool is for, or None where the tables don't tell.

    Names match whatever their case and separators. A tool of an MCP server
    (`mcp__server__tool`) is known by its own name if that has more than one
    word. `own` names roles by tool and goes before the tables.
    """
    if own and (role := own_role(name, own)):
        return role
    plain, is_prefixed = _plain(name)
    if plain in COMMAND_TOOLS:
        command = (arguments or {}).get("command")
        return COMMAND_ROLES.get(command, "edit") if isinstance(command, str) else "edit"
    key = _key(plain)
    if is_prefixed:
        return _by_name("mcp").get(key) or (_any_host().get(key) if "_" in plain else None)
    return _by_name(host).get(key) or _any_host().get(key)


def own_role(name: str, own: Mapping[str, ToolRole]) -> ToolRole | None:
    """The role that a tool was given by name, with or without its server's before it."""
    return own.get(name) or own.get(_plain(name)[0])


_NAMES_A_PATH = frozenset(PATH_ARGUMENTS)


def tool_path(arguments: Mapping[str, Any]) -> str | None:
    """The file that a call works on, as it was given."""
    if _NAMES_A_PATH.isdisjoint(arguments):
        return None
    for name in PATH_ARGUMENTS:
        path = arguments.get(name)
        if path and isinstance(path, str):
            return path
    return None


@cache
def _by_name(host: str | None) -> Mapping[str, ToolRole]:
    roles = HOST_TOOLS.get(host or "", {})
    return {_key(name): role for role, names in roles.items() for name in names}


@cache
def _any_host() -> Mapping[str, ToolRole]:
    """Roles by name over all hosts; where hosts differ, the one named first has it."""
    found: dict[str, ToolRole] = {}
    for host in HOST_TOOLS:
        for key, role in _by_name(host).items():
            if key not in HOST_ONLY_NAMES:
                found.setdefault(key, role)
    return found


def _plain(name: str) -> tuple[str, bool]:
    """The tool's own name, and whether the name of a server stood before it."""
    if name.startswith("functions."):
        return name.removeprefix("functions."), False
    *servers, own = name.split("__")
    return own or name, bool(servers)


def _key(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()
