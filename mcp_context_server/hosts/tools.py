"""What a host's tools are for, from a file of the settings: names by host and role.

    {"my-ide": {"read": ["open_buffer"], "todo": ["set_tasks"]}}

It adds to the tables of the known hosts, and goes before them.
"""

from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from mcp_context_server.core.tool_roles import ToolRole
from mcp_context_server.errors import InvalidInput

_Hosts = dict[str, dict[ToolRole, tuple[str, ...]]]


def read_host_tools(path: Path) -> dict[str, ToolRole]:
    """The roles by tool name. Raises `InvalidInput` where the file can't be used."""
    try:
        hosts = TypeAdapter[_Hosts](_Hosts).validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        message = f"The host tools file {str(path)!r} can't be used: {error}"
        raise InvalidInput(message) from error
    named: list[tuple[str, ToolRole]] = [
        (name, role) for roles in hosts.values() for role, names in roles.items() for name in names
    ]
    found: dict[str, ToolRole] = dict(named)
    if twice := [name for name, role in named if found[name] != role]:
        message = f"The host tools file {str(path)!r} gives {twice[0]!r} two roles; give it one."
        raise InvalidInput(message)
    return found
