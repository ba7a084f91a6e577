"""`hook EVENT` and `statusline`: JSON on stdin, an answer on stdout.

Whatever goes wrong is logged and never troubles the host: no output, and exit code 0.
"""

import json
import os
import sys
from pathlib import Path

from mcp_context_server.hosts.hooks.state import State

MOST_INPUT_BYTES = 32 << 20
"""More is no event of a host's."""
LOG_CHARS = 4_000


def is_hook(arguments: list[str]) -> bool:
    """Whether a command line is one that is answered here, with something on stdin."""
    match arguments:
        case ["statusline"]:
            return not sys.stdin.isatty()
        case ["hook", event]:
            return not event.startswith("-") and not sys.stdin.isatty()
        case _:
            return False


def run(arguments: list[str]) -> None:
    """Answer one event. Never raises."""
    try:
        state = State.of_user()
    except Exception as error:
        print(f"mcp-context-server: no state directory: {error}", file=sys.stderr)
        return
    try:
        sys.stdout.write(answer(arguments, sys.stdin.buffer.read(MOST_INPUT_BYTES), state))
        sys.stdout.flush()
    except Exception:
        import time
        import traceback

        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        told = traceback.format_exc()[-LOG_CHARS:]
        state.log(f"{at} {' '.join(arguments)} failed:\n{told}")


def answer(arguments: list[str], given: bytes, state: State) -> str:
    """What to print for an event, or for the status line."""
    import time

    from mcp_context_server.hosts.hooks.tail import as_object

    told = as_object(json.loads(given.decode("utf-8", "replace")))
    if arguments[0] == "statusline":
        from mcp_context_server.hosts.hooks.statusline import status_line

        return status_line(told, os.environ, state) + "\n"
    from mcp_context_server.hosts.hooks.events import EVENTS, Event

    event = Event(told, os.environ, state, time.time(), _prepare, _hand_over)
    said = EVENTS[arguments[1]](event)
    if said is None:
        return ""
    return said if isinstance(said, str) else json.dumps(said, ensure_ascii=True)


def _prepare(transcript: Path, session: str, ticket: str) -> None:
    """Start a process of its own for what takes longer than a host waits."""
    import subprocess

    module = "mcp_context_server.hosts.hooks.handover"
    subprocess.Popen(
        [sys.executable, "-m", module, str(transcript), session, ticket],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _hand_over(transcript: Path, session: str) -> str:
    from mcp_context_server.hosts.hooks.handover import handover

    return handover(transcript, session, os.environ, is_awaited=True)
