"""What an edit changed in a file: the lines that it brought in, and the most telling of them."""

import re
from collections.abc import Sequence

from mcp_context_server.core.summary.extract import Action


def patch_text(action: Action) -> str:
    """The argument that holds a patch; empty where none does."""
    for value in action.arguments.values():
        if isinstance(value, str) and "*** " in value:
            return value
    return ""


_OLD_KEYS = ("old_string", "old_str", "oldText", "old_text")


_NEW_KEYS = ("new_string", "new_str", "newText", "new_text", "content", "file_text", "contents")


def changed_line(action: Action) -> str:
    """The most telling line that a change brings in; empty where it only takes out."""
    return max(added_lines(action), key=_telling, default="")


def added_lines(action: Action) -> list[str]:
    """The lines that a change brings in, without indentation and blank lines, in order."""
    old, new = _argument(action, _OLD_KEYS), _argument(action, _NEW_KEYS)
    if not new and (patch := patch_text(action)):
        lines = patch[:_SCANNED_PATCH_CHARS].splitlines()
        old, new = "", "\n".join(line[1:] for line in lines if line.startswith("+"))
    known = {line.strip() for line in old[:_SCANNED_PATCH_CHARS].splitlines()}
    fresh = (line.strip() for line in new[:_SCANNED_PATCH_CHARS].splitlines())
    return [line for line in fresh if line and line not in known]


_SCANNED_PATCH_CHARS = 20_000


def _argument(action: Action, keys: Sequence[str]) -> str:
    for key in keys:
        value = action.arguments.get(key)
        if isinstance(value, str):
            return value
    return ""


_DEFINING = re.compile(
    r"(?:export |public |private |async |static |pub )*"
    r"(?:def|class|func|function|fn|type|interface|struct|enum|trait|impl|module|const|let|var)\b"
)


def _telling(line: str) -> int:
    """How much a line says about a change: a definition most, a lone bracket least."""
    return 2 * (_DEFINING.match(line) is not None) + (sum(map(str.isalnum, line[:80])) > 6)
